#include "comm/rounds.hpp"

#include <numeric>
#include <utility>

#include "comm/reduce.hpp"

namespace t3d {
namespace {

// The scratch memory holds the parts in the order of the ranks from the own one on: what has come
// so far is one piece, and so is what goes out.
class GatherInRounds final : public Operation {
 public:
  GatherInRounds(const Party& party, ConstTensorView part, TensorView whole,
                 std::span<const index_t> counts)
      : part_(part),
        whole_(whole),
        before_(std::accumulate(counts.begin(), counts.begin() + party.rank, index_t{0}) *
                size_of(whole.dtype)),
        rounds_(party),
        scratch_(party.engine.scratch(), whole.bytes()) {
    const int ranks = party.size();
    std::vector<index_t> ends{0};  // bytes of the first 0, 1, ... parts in scratch memory
    for (int at = 0; at < ranks; ++at)
      ends.push_back(ends.back() + counts[static_cast<std::size_t>((party.rank + at) % ranks)] *
                                       size_of(whole.dtype));
    const auto end = [&](int parts) { return ends[static_cast<std::size_t>(parts)]; };
    for (int distance = 1; distance < ranks; distance *= 2) {
      const int blocks = blocks_in_round(distance, ranks);
      rounds_.send_to(party.member(party.rank + ranks - distance)).add(place(0), end(blocks));
      rounds_.receive_from(party.member(party.rank + distance))
          .add(place(end(distance)), end(distance + blocks) - end(distance));
    }
  }
  bool advance() override {
    // Not before: an all-reduce makes this operation ahead of the numbers that it gathers.
    if (!begun_) copy_bytes(place(0), part_.data, part_.bytes());
    begun_ = true;
    if (!rounds_.advance([](std::size_t) {})) return false;
    auto* whole = static_cast<std::byte*>(whole_.data);
    const index_t own_and_after = whole_.bytes() - before_;
    copy_bytes(whole + before_, place(0), own_and_after);
    copy_bytes(whole, place(own_and_after), before_);
    scratch_.done();
    return true;
  }
  [[nodiscard]] Traffic traffic() const override { return rounds_.traffic(); }
  void missing(std::set<int>& peers) const override { rounds_.missing(peers); }

 private:
  [[nodiscard]] std::byte* place(index_t bytes) const { return scratch_.data() + bytes; }

  ConstTensorView part_;
  TensorView whole_;
  index_t before_;  // bytes of the parts of lower ranks
  bool begun_ = false;
  Rounds rounds_;
  Scratch scratch_;
};

// Every partial result keeps its own memory: it may still be on its way when the next is there.
class TreeAllReduce final : public Operation {
 public:
  TreeAllReduce(const Party& party, TensorView x, ReduceOp op)
      : x_(x),
        op_(op),
        type_(partial_type_of(x.dtype)),
        bytes_(x.count() * size_of(type_)),
        rounds_(party),
        scratch_(party.engine.scratch(), 2 * (rounds_of(party.size()) + 2) * bytes_) {
    const int doubling = doubling_ranks(party.size());
    const int rank = party.rank;
    if (rank >= doubling) {
      send(party, rank - doubling);
      receive(party, rank - doubling, Part::result);
      return;
    }
    const bool folds = rank + doubling < party.size();
    if (folds) receive(party, rank + doubling, Part::upper);
    for (int distance = 1; distance < doubling; distance *= 2) {
      const int peer = rank ^ distance;
      send(party, peer);
      receive(party, peer, peer < rank ? Part::lower : Part::upper);
    }
    if (folds) send(party, rank + doubling);
  }
  bool advance() override {
    if (!begun_) convert(x_.dtype, x_.data, type_, partial(0));
    begun_ = true;
    if (!rounds_.advance([this](std::size_t at) { combine(at); })) return false;
    convert(type_, partial(parts_.size()), x_.dtype, x_.data);
    scratch_.done();
    return true;
  }
  [[nodiscard]] Traffic traffic() const override { return rounds_.traffic(); }
  void missing(std::set<int>& peers) const override { rounds_.missing(peers); }

 private:
  enum class Part { lower, upper, result };  // what comes: of lower ranks, of higher ones, of all

  void send(const Party& party, int peer) {
    rounds_.send_to(party.member(peer)).add(partial(parts_.size()), bytes_);
  }
  void receive(const Party& party, int peer, Part part) {
    rounds_.receive_from(party.member(peer)).add(received(parts_.size()), bytes_);
    parts_.push_back(part);
  }
  // Partial result `at` covers what the first `at` receives brought.
  [[nodiscard]] std::byte* partial(std::size_t at) const {
    return scratch_.data() + 2 * static_cast<index_t>(at) * bytes_;
  }
  [[nodiscard]] std::byte* received(std::size_t at) const { return partial(at) + bytes_; }
  void combine(std::size_t at) {
    std::vector<const void*> sources{partial(at), received(at)};
    if (parts_[at] == Part::lower) std::swap(sources[0], sources[1]);
    if (parts_[at] == Part::result) sources.erase(sources.begin());
    reduce(op_, type_, sources, type_, partial(at + 1), x_.count());
  }
  void convert(DType from_type, const void* from, DType to_type, void* to) const {
    const void* const source = from;
    reduce(from_type == to_type ? op_ : ReduceOp::sum, from_type, {&source, 1}, to_type, to,
           x_.count());
  }

  TensorView x_;
  ReduceOp op_;
  DType type_;     // of the partial results
  index_t bytes_;  // of one
  bool begun_ = false;
  std::vector<Part> parts_;
  Rounds rounds_;
  Scratch scratch_;
};

class TreeBroadcast final : public Operation {
 public:
  TreeBroadcast(const Party& party, TensorView x, int root)
      : lanes_(party.engine.transport(), party.tag) {
    if (party.rank != root)
      lanes_.receive_from(party.member(broadcast_parent(party.size(), party.rank, root)))
          .add(x.data, x.bytes());
    for (const int child : broadcast_children(party.size(), party.rank, root))
      lanes_.send_to(party.member(child)).add(x.data, x.bytes());
  }
  bool advance() override {
    bool finished = lanes_.advance_receives();
    index_t here = Lane::kNoLimit;
    for (const Lane& lane : lanes_.receives()) here = lane.retired();
    for (Lane& lane : lanes_.sends())
      finished = (lane.finished() || lane.advance(here)) && finished;
    return finished;
  }
  [[nodiscard]] Traffic traffic() const override { return lanes_.traffic(); }
  void missing(std::set<int>& peers) const override {
    for (const Lane& lane : lanes_.receives())
      if (!lane.finished()) peers.insert(lane.peer());
    if (peers.empty()) lanes_.missing(peers);
  }

 private:
  Lanes lanes_;
};

}  // namespace

void Rounds::missing(std::set<int>& peers) const {
  if (arrived_ < lanes_.receives().size())
    peers.insert(lanes_.receives()[arrived_].peer());
  else
    lanes_.missing(peers);
}

OperationPtr make_gather_in_rounds(const Party& party, ConstTensorView part, TensorView whole,
                                   std::span<const index_t> counts) {
  return std::make_unique<GatherInRounds>(party, part, whole, counts);
}

OperationPtr make_tree_all_reduce(const Party& party, TensorView x, ReduceOp op) {
  return std::make_unique<TreeAllReduce>(party, x, op);
}

OperationPtr make_tree_broadcast(const Party& party, TensorView x, int root) {
  return std::make_unique<TreeBroadcast>(party, x, root);
}

}  // namespace t3d
