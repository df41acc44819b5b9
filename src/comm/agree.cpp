#include "comm/agree.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <numeric>

#include "device/host_limits.hpp"

namespace t3d {
namespace {

/// Texts travel as 32-bit words, padded at the end.
struct Words {
  std::vector<std::int32_t> words;
  Words() = default;
  explicit Words(index_t bytes) : words(static_cast<std::size_t>((bytes + 3) / 4)) {}
  explicit Words(const std::string& text) : Words(std::ssize(text)) {
    if (!text.empty()) std::memcpy(words.data(), text.data(), text.size());
  }
  [[nodiscard]] index_t size() const { return std::ssize(words); }
  [[nodiscard]] TensorView view() { return {words.data(), DType::i32, 1, size()}; }
};

std::string text_from(const std::int32_t* words, index_t bytes) {
  std::string text(static_cast<std::size_t>(bytes), '\0');
  if (bytes > 0) std::memcpy(text.data(), words, text.size());
  return text;
}

/// Lengths in bytes of all ranks' texts.
std::vector<index_t> gather_lengths(Communicator& group, index_t bytes) {
  const auto ranks = static_cast<std::size_t>(group.size());
  std::vector<index_t> lengths(ranks);
  const std::vector<index_t> counts(ranks, 2);  // a length is two words
  group
      .all_gather({&bytes, DType::i32, 1, 2}, {lengths.data(), DType::i32, 1, 2 * group.size()},
                  counts)
      .wait_host();
  return lengths;
}

}  // namespace

Error on_this_rank(const Communicator& group, const Error& fault) {
  if (group.size() == 1) return fault;
  return {fault.code(),
          fmt::format("{} (rank {}, node {})", fault.what(), group.rank(), host_name())};
}

void agree(Communicator& group, const std::optional<Error>& fault) {
  std::int32_t worst = fault ? group.size() - group.rank() : 0;  // largest = lowest rank
  group.all_reduce({&worst, DType::i32, 1, 1}, ReduceOp::max).wait_host();
  if (worst == 0) return;
  const int rank = group.size() - worst;
  std::array<std::int32_t, 2> kind{};  // exit code, refused
  if (fault) kind = {static_cast<std::int32_t>(fault->code()), fault->refused()};
  group.broadcast({kind.data(), DType::i32, 1, 2}, rank).wait_host();
  const std::string text = broadcast_text(group, fault ? fault->what() : "", rank);
  throw AgreedError(static_cast<ExitCode>(kind[0]), text, kind[1] != 0);
}

std::vector<double> all_gather_numbers(Communicator& group, double number) {
  std::vector<double> all(static_cast<std::size_t>(group.size()));
  const std::vector<index_t> counts(all.size(), 1);
  group
      .all_gather({&number, DType::f64, 1, 1}, {all.data(), DType::f64, 1, std::ssize(all)}, counts)
      .wait_host();
  return all;
}

std::vector<std::string> all_gather_texts(Communicator& group, const std::string& text) {
  const std::vector<index_t> lengths = gather_lengths(group, std::ssize(text));
  std::vector<index_t> counts;
  for (const index_t bytes : lengths) counts.push_back((bytes + 3) / 4);
  Words mine(text);
  Words all(4 * std::accumulate(counts.begin(), counts.end(), index_t{0}));
  group.all_gather(mine.view(), all.view(), counts).wait_host();
  std::vector<std::string> texts;
  const std::int32_t* at = all.words.data();
  for (std::size_t rank = 0; rank < lengths.size(); at += counts[rank++])
    texts.push_back(text_from(at, lengths[rank]));
  return texts;
}

std::string join_texts_of_ranks(Communicator& group, std::string text, const JoinTexts& join,
                                std::optional<Error>& fault) {
  const int rank = group.rank(), size = group.size();
  for (int step = 1; step < size; step *= 2) {
    const bool sends = rank % (2 * step) == step;
    const bool receives = rank % (2 * step) == 0 && rank + step < size;
    const int peer = sends ? rank - step : rank + step;
    index_t bytes = sends ? std::ssize(text) : 0;
    const auto pass = [&](TensorView view) {  // every rank exchanges, most of them nothing
      std::vector<Exchange> messages;
      if (sends) messages.push_back({peer, view, {}});
      if (receives) messages.push_back({peer, {}, view});
      group.exchange(std::move(messages)).wait_host();
    };
    pass({&bytes, DType::i32, 1, 2});  // a length is two words
    Words words = sends ? Words(text) : Words(bytes);
    pass(words.view());
    if (sends) text.clear();
    if (receives) attempt(fault, [&] { text = join(text, text_from(words.words.data(), bytes)); });
  }
  return text;
}

std::vector<std::string> gather_texts(Communicator& group, const std::string& text) {
  const auto packed = [](const std::string& one) {
    const index_t bytes = std::ssize(one);
    std::string whole(sizeof bytes, '\0');
    std::memcpy(whole.data(), &bytes, sizeof bytes);
    return whole + one;
  };
  std::optional<Error> fault;
  const std::string all = join_texts_of_ranks(
      group, packed(text), [](const auto& lower, const auto& higher) { return lower + higher; },
      fault);
  if (fault) throw *fault;  // no memory: nobody waits for this rank's words alone
  std::vector<std::string> texts;
  if (group.rank() != 0) return texts;
  for (std::size_t at = 0; at < all.size();) {
    index_t bytes = 0;
    std::memcpy(&bytes, all.data() + at, sizeof bytes);
    texts.push_back(all.substr(at + sizeof bytes, static_cast<std::size_t>(bytes)));
    at += sizeof bytes + static_cast<std::size_t>(bytes);
  }
  return texts;
}

std::string broadcast_text(Communicator& group, const std::string& text, int root) {
  index_t bytes = std::ssize(text);
  group.broadcast({&bytes, DType::i32, 1, 2}, root).wait_host();
  Words words = group.rank() == root ? Words(text) : Words(bytes);
  group.broadcast(words.view(), root).wait_host();
  return text_from(words.words.data(), bytes);
}

}  // namespace t3d
