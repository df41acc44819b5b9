#include "layers/decoder.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/error.hpp"

namespace t3d {
namespace {

index_t lanes_of(const Transformer& model, const Context& context) {
  const bool by_sequences = model.shape().cut.attention == AttentionCut::sequences;
  return by_sequences ? context.extent(Axis::k) : 1;
}

/// Sequences of a slab on its fullest lane: all ranks of a slab keep room for as many.
index_t sequences_of(const Partition& slots, const Context& context, index_t lanes) {
  return even_size(slots.size(context.coord(Axis::i)), lanes, 0);
}

}  // namespace

Decoder::Decoder(const Context& context, Transformer& model, index_t slots, index_t capacity)
    : context_(context),
      model_(model),
      lanes_(lanes_of(model, context)),
      slots_(model.shape().cut.tokens_of(slots)),
      cache_(context, model.shape(), sequences_of(slots_, context, lanes_), capacity),
      lengths_(static_cast<std::size_t>(slots), 0) {
  T3D_CHECK(capacity <= model.shape().model.context, "{} kept tokens, context {}", capacity,
            model.shape().model.context);
}

Decoder::Place Decoder::place_of(index_t slot) const {
  const index_t slab = slots_.part_of(slot);
  const Partition lanes = Partition::even("lane", slots_.size(slab), lanes_);
  const index_t within = slot - slots_.begin(slab), lane = lanes.part_of(within);
  return {slab, lane, within - lanes.begin(lane)};
}

void Decoder::check(index_t slot, index_t tokens) const {
  T3D_CHECK(slot >= 0 && slot < slots_.length(), "slot {} of {}", slot, slots_.length());
  T3D_CHECK(tokens >= 1 && tokens <= capacity(), "{} tokens where {} are kept", tokens, capacity());
}

std::vector<float> Decoder::read(std::span<const Prompt> prompts) {
  // The next prompt of each lane makes a round.
  std::map<std::pair<index_t, index_t>, std::size_t> prompts_of_lane;
  std::vector<std::vector<std::size_t>> rounds;
  for (std::size_t at = 0; at < prompts.size(); ++at) {
    const Prompt& prompt = prompts[at];
    check(prompt.slot, std::ssize(prompt.ids));
    const Place place = place_of(prompt.slot);
    const std::size_t round = prompts_of_lane[{place.slab, place.lane}]++;
    if (round == rounds.size()) rounds.emplace_back();
    rounds[round].push_back(at);
    lengths_[static_cast<std::size_t>(prompt.slot)] = std::ssize(prompt.ids);
  }
  const auto vocab = static_cast<std::size_t>(model_.shape().vocab().length());
  std::vector<float> result(prompts.size() * vocab);
  for (const std::vector<std::size_t>& round : rounds) {
    std::vector<Piece> pieces;
    index_t longest = 0;
    for (const std::size_t at : round) {
      pieces.push_back({prompts[at].slot, 0, prompts[at].ids});
      longest = std::max(longest, std::ssize(prompts[at].ids));
    }
    const std::vector<float> logits = pass(pieces, longest);
    for (std::size_t row = 0; row < round.size(); ++row)
      std::copy_n(logits.begin() + static_cast<std::ptrdiff_t>(row * vocab), vocab,
                  result.begin() + static_cast<std::ptrdiff_t>(round[row] * vocab));
  }
  return result;
}

std::vector<float> Decoder::go_on(std::span<const Next> tokens) {
  std::vector<Piece> pieces;
  for (const Next& next : tokens) {
    index_t& length = lengths_[static_cast<std::size_t>(next.slot)];
    check(next.slot, length + 1);
    pieces.push_back({next.slot, length++, {&next.id, 1}});
  }
  return pass(pieces, 1);
}

std::vector<float> Decoder::pass(std::span<const Piece> pieces, index_t length) {
  const index_t slabs = context_.extent(Axis::i), mine = context_.coord(Axis::i);
  // Rows of each lane, equal within a slab.
  std::map<std::pair<index_t, index_t>, index_t> filled;
  std::vector<index_t> width(static_cast<std::size_t>(slabs), 0);
  std::vector<index_t> number;  // of a piece on its lane
  for (const Piece& piece : pieces) {
    const Place place = place_of(piece.slot);
    number.push_back(filled[{place.slab, place.lane}]++);
    index_t& widest = width[static_cast<std::size_t>(place.slab)];
    widest = std::max(widest, number.back() + 1);
  }
  std::vector<index_t> sequences;
  for (const index_t of_lane : width) sequences.push_back(of_lane * lanes_);
  const Partition tokens = Partition::from_sizes("tokens", sequences).scaled(length, "tokens");

  const auto rows = static_cast<std::size_t>(tokens.size(mine));
  std::vector<std::int32_t> ids(rows, 0), places(rows, -1), positions(rows, 0);
  HeadLoss::RowsOfSlabs last(static_cast<std::size_t>(slabs));
  std::vector<std::vector<std::size_t>> piece_of(static_cast<std::size_t>(slabs));
  for (std::size_t at = 0; at < pieces.size(); ++at) {
    const Piece& piece = pieces[at];
    const Place place = place_of(piece.slot);
    const auto slab = static_cast<std::size_t>(place.slab);
    const index_t row = (place.lane * width[slab] + number[at]) * length;
    last[slab].push_back(row + std::ssize(piece.ids) - 1);
    piece_of[slab].push_back(at);
    for (index_t t = 0; t < std::ssize(piece.ids) && place.slab == mine; ++t) {
      const auto to = static_cast<std::size_t>(row + t);
      ids[to] = piece.ids[static_cast<std::size_t>(t)];
      positions[to] = static_cast<std::int32_t>(piece.first + t);
      places[to] = static_cast<std::int32_t>(place.row * capacity() + piece.first + t);
    }
  }
  const auto send = [&](const std::vector<std::int32_t>& numbers) {
    Tensor to = context_.make(DType::i32, 1, std::ssize(numbers), MemoryKind::workspace);
    context_.device.copy(to.view().data, numbers.data(), to.view().bytes(), context_.queue);
    return to;
  };
  const Tensor places_there = send(places), positions_there = send(positions);
  const KeptPass kept{cache_, places_there.view(), positions_there.view()};
  PassInfo info;
  info.length = length;
  info.kept = &kept;
  const std::vector<float> by_slab = model_.logits(ids, tokens, info, last);

  // From the order of slabs to that of the pieces.
  const auto vocab = static_cast<std::size_t>(model_.shape().vocab().length());
  std::vector<float> result(by_slab.size());
  auto from = by_slab.begin();
  for (const std::vector<std::size_t>& of_slab : piece_of)
    for (const std::size_t at : of_slab) {
      std::copy_n(from, vocab, result.begin() + static_cast<std::ptrdiff_t>(at * vocab));
      from += static_cast<std::ptrdiff_t>(vocab);
    }
  return result;
}

}  // namespace t3d
