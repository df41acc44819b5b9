#include "support/comm_cases.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <span>

#include "comm/cost.hpp"
#include "core/random.hpp"

namespace t3d::test {
namespace {

using Bytes = std::vector<std::byte>;

// Element `index` of rank `rank`'s contribution: not exactly summable, so that order shows.
double value_of(DType type, int rank, index_t index) {
  auto bits = static_cast<std::uint64_t>(index * 64 + rank + 1) * 0x9e3779b97f4a7c15ULL;
  bits = (bits ^ (bits >> 29)) * 0xbf58476d1ce4e5b9ULL;
  if (type == DType::i32) return static_cast<double>(bits >> 40);
  return (static_cast<double>(bits >> 11) * 0x1p-53 - 0.5) * (index % 7 == 0 ? 1000 : 1);
}

template <class T>
void store(Bytes& bytes, index_t at, double value) {
  const T typed = static_cast<T>(value);
  std::memcpy(bytes.data() + at * static_cast<index_t>(sizeof(T)), &typed, sizeof(T));
}
template <class T>
double load(const Bytes& bytes, index_t at) {
  T typed;
  std::memcpy(&typed, bytes.data() + at * static_cast<index_t>(sizeof(T)), sizeof(T));
  return static_cast<double>(typed);
}

void set(Bytes& bytes, DType type, index_t at, double value) {
  switch (type) {
    case DType::f64: return store<double>(bytes, at, value);
    case DType::f32: return store<float>(bytes, at, value);
    case DType::bf16: return store<bf16>(bytes, at, value);
    case DType::f16: return store<f16>(bytes, at, value);
    case DType::i32: return store<std::int32_t>(bytes, at, value);
  }
}
double get(const Bytes& bytes, DType type, index_t at) {
  switch (type) {
    case DType::f64: return load<double>(bytes, at);
    case DType::f32: return load<float>(bytes, at);
    case DType::bf16: return load<bf16>(bytes, at);
    case DType::f16: return load<f16>(bytes, at);
    case DType::i32: return load<std::int32_t>(bytes, at);
  }
  return 0;
}

Bytes make(DType type, index_t count) {
  return Bytes(static_cast<std::size_t>(count * size_of(type)), std::byte{0x5a});
}
Bytes make(DType type, index_t count, int rank, index_t first = 0) {
  Bytes bytes = make(type, count);
  for (index_t at = 0; at < count; ++at) set(bytes, type, at, value_of(type, rank, first + at));
  return bytes;
}
TensorView view(Bytes& bytes, DType type, index_t first, index_t count) {
  return {bytes.data() + first * size_of(type), type, 1, count};
}
TensorView view(Bytes& bytes, DType type) {
  return view(bytes, type, 0, static_cast<index_t>(bytes.size()) / size_of(type));
}

Digest digest_of(const Bytes& bytes) {
  return stream_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// fp32 (fp64) accumulation.
double combined(ReduceOp op, DType type, double a, double b) {
  if (op == ReduceOp::max) return std::max(a, b);
  if (op == ReduceOp::bit_or) return static_cast<std::int32_t>(a) | static_cast<std::int32_t>(b);
  if (type == DType::f64 || type == DType::i32) return a + b;
  return static_cast<double>(static_cast<float>(a) + static_cast<float>(b));
}

enum class Order { ranks, tree };

double folded(ReduceOp op, DType type, const std::vector<double>& values, Order order) {
  const std::size_t n = values.size();
  if (order == Order::ranks) {
    double sum = values[0];
    for (std::size_t rank = 1; rank < n; ++rank) sum = combined(op, type, sum, values[rank]);
    return sum;
  }
  std::vector<double> level(values);
  while ((level.size() & (level.size() - 1)) != 0) level.pop_back();
  for (std::size_t leaf = 0; level.size() + leaf < n; ++leaf)
    level[leaf] = combined(op, type, level[leaf], values[level.size() + leaf]);
  while (level.size() > 1) {
    std::vector<double> next;
    for (std::size_t at = 0; at < level.size(); at += 2)
      next.push_back(combined(op, type, level[at], level[at + 1]));
    level = std::move(next);
  }
  return level[0];
}

// The definition: a fixed order, one rounding to `to`.
Bytes reduced(ReduceOp op, DType type, DType to, const std::vector<Bytes>& sources, Order order) {
  const index_t count = static_cast<index_t>(sources[0].size()) / size_of(type);
  Bytes result = make(to, count);
  std::vector<double> values(sources.size());
  for (index_t at = 0; at < count; ++at) {
    for (std::size_t rank = 0; rank < sources.size(); ++rank)
      values[rank] = get(sources[rank], type, at);
    set(result, to, at, folded(op, type, values, order));
  }
  return result;
}

void expect_equal(const Bytes& result, const Bytes& expected, const char* verb,
                  Communicator& group) {
  T3D_CHECK(result.size() == expected.size(), "{}", verb);
  const auto wrong = std::mismatch(result.begin(), result.end(), expected.begin());
  T3D_CHECK(wrong.first == result.end(), "{} on rank {} of {}: byte {} of {} is wrong", verb,
            group.rank(), group.size(), wrong.first - result.begin(), result.size());
}

// What is counted while it lives must be `expected` in one call.
class LedgerCheck {
 public:
  LedgerCheck(Communicator& group, Verb verb) : group_(group), verb_(verb), before_(entry()) {}
  void expect(const Traffic& expected) const {
    const Ledger::Entry now = entry();
    const Traffic counted{now.bytes - before_.bytes, now.messages - before_.messages};
    T3D_CHECK(counted == expected && now.calls == before_.calls + 1,
              "{}: {} bytes, {} messages in {} calls counted, the formula says {}, {}",
              name_of(verb_), counted.bytes, counted.messages, now.calls - before_.calls,
              expected.bytes, expected.messages);
  }

 private:
  [[nodiscard]] Ledger::Entry entry() const {
    const auto& table = group_.ledger().table();
    const auto found = table.find({verb_, group_.axis()});
    return found == table.end() ? Ledger::Entry() : found->second;
  }
  Communicator& group_;
  Verb verb_;
  Ledger::Entry before_;
};

index_t total_of(const std::vector<index_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), index_t{0});
}
index_t offset_of(const std::vector<index_t>& counts, int rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, index_t{0});
}

}  // namespace

std::vector<index_t> counts_of(Shares shares, int ranks) {
  std::vector<index_t> counts;
  for (int rank = 0; rank < ranks; ++rank) {
    switch (shares) {
      case Shares::equal: counts.push_back(37); break;
      case Shares::uneven: counts.push_back(5 + 11 * rank); break;
      case Shares::zeros: counts.push_back(rank % 2 == 0 ? 0 : 100 + rank); break;
      case Shares::empty: counts.push_back(0); break;
      // Beyond one chunk, and with an odd rest.
      case Shares::large: counts.push_back(9001 + (rank == 0 ? 140000 : 0)); break;
    }
  }
  return counts;
}

Digest check_all_gather(Communicator& group, DType type, Shares shares, bool in_place) {
  const auto counts = counts_of(shares, group.size());
  const index_t own = counts[static_cast<std::size_t>(group.rank())];
  Bytes expected;
  for (int rank = 0; rank < group.size(); ++rank) {
    const Bytes part = make(type, counts[static_cast<std::size_t>(rank)], rank);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  Bytes part = make(type, own, group.rank());
  Bytes whole = make(type, total_of(counts));
  TensorView source = view(part, type);
  if (in_place) {
    source = view(whole, type, offset_of(counts, group.rank()), own);
    std::copy(part.begin(), part.end(), static_cast<std::byte*>(source.data));
  }
  const LedgerCheck ledger(group, Verb::all_gather);
  group.all_gather(source, view(whole, type), counts).wait_host();
  ledger.expect(all_gather_traffic(counts, group.rank(), type));
  expect_equal(whole, expected, "all_gather", group);
  return digest_of(whole);
}

Digest check_reduce_scatter(Communicator& group, DType type, DType part_type, Shares shares,
                            bool in_place) {
  const auto counts = counts_of(shares, group.size());
  const index_t own = counts[static_cast<std::size_t>(group.rank())];
  const index_t first = offset_of(counts, group.rank());
  std::vector<Bytes> sources;
  for (int rank = 0; rank < group.size(); ++rank) sources.push_back(make(type, own, rank, first));
  const Bytes expected = reduced(ReduceOp::sum, type, part_type, sources, Order::ranks);

  Bytes whole = make(type, total_of(counts), group.rank());
  Bytes part = make(part_type, own);
  const TensorView target = in_place ? view(whole, type, first, own) : view(part, part_type);
  const LedgerCheck ledger(group, Verb::reduce_scatter);
  group.reduce_scatter(view(whole, type), target, counts).wait_host();
  ledger.expect(reduce_scatter_traffic(counts, group.rank(), type));
  if (in_place) std::copy_n(static_cast<const std::byte*>(target.data), part.size(), part.begin());
  expect_equal(part, expected, "reduce_scatter", group);
  return digest_of(part);
}

Digest check_all_reduce(Communicator& group, DType type, ReduceOp op, index_t count) {
  std::vector<Bytes> sources;
  for (int rank = 0; rank < group.size(); ++rank) sources.push_back(make(type, count, rank));
  const bool tree = group.size() > 16 && count <= 512;
  const Bytes expected = reduced(op, type, type, sources, tree ? Order::tree : Order::ranks);
  Bytes x = sources[static_cast<std::size_t>(group.rank())];
  const LedgerCheck ledger(group, Verb::all_reduce);
  group.all_reduce(view(x, type), op).wait_host();
  ledger.expect(all_reduce_traffic(count, group.size(), group.rank(), type));
  expect_equal(x, expected, "all_reduce", group);
  return digest_of(x);
}

Digest check_broadcast(Communicator& group, DType type, index_t count, int root) {
  const Bytes expected = make(type, count, root);
  Bytes x = make(type, count, group.rank());
  const LedgerCheck ledger(group, Verb::broadcast);
  group.broadcast(view(x, type), root).wait_host();
  ledger.expect(broadcast_traffic(count, group.size(), group.rank(), root, type));
  expect_equal(x, expected, "broadcast", group);
  return digest_of(x);
}

Digest check_exchange(Communicator& group, DType type) {
  const int n = group.size();
  const auto length = [&](int from, int to) {
    return static_cast<index_t>((from * 7 + to * 3) % 11) * 9000;
  };
  std::vector<Exchange> messages;
  std::vector<Bytes> sent, received, expected;
  sent.reserve(static_cast<std::size_t>(n) + 2);
  received.reserve(static_cast<std::size_t>(n) + 2);
  Traffic traffic;
  std::set<int> peers;
  const auto add = [&](int peer, index_t out, index_t in, index_t first) {
    sent.push_back(make(type, out, group.rank(), first));
    received.push_back(make(type, in));
    expected.push_back(make(type, in, peer, first));
    messages.push_back({peer, view(sent.back(), type), view(received.back(), type)});
    if (peer == group.rank() || out == 0) return;
    traffic.bytes += out * size_of(type);
    peers.insert(peer);
  };
  for (int distance = 0; distance < n; ++distance) {
    const int peer = (group.rank() + distance) % n;
    add(peer, length(group.rank(), peer), length(peer, group.rank()), 0);
  }
  // A second message between neighbours: the order between a pair must hold.
  add((group.rank() + 1) % n, 70000, 0, 5);
  add((group.rank() + n - 1) % n, 0, 70000, 5);

  const LedgerCheck ledger(group, Verb::exchange);
  group.exchange(std::move(messages)).wait_host();
  traffic.messages = std::ssize(peers);
  ledger.expect(traffic);
  Digest digest = 0;
  for (std::size_t at = 0; at < received.size(); ++at) {
    expect_equal(received[at], expected[at], "exchange", group);
    digest = digest * 31 + digest_of(received[at]);
  }
  return digest;
}

Digest check_every_verb(Communicator& group) {
  Digest digest = 0;
  const auto note = [&](Digest next) { digest = digest * 1000003 + next; };
  for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i32}) {
    for (const Shares shares : kAllShares) {
      for (const bool in_place : {false, true}) {
        note(check_all_gather(group, type, shares, in_place));
        note(check_reduce_scatter(group, type, type, shares, in_place));
      }
      if (is_half(type)) note(check_reduce_scatter(group, type, DType::f32, shares, false));
    }
    for (const index_t count : {0, 1, 512, 513, 200003}) {
      note(check_all_reduce(group, type, ReduceOp::sum, count));
      if (!is_half(type)) note(check_all_reduce(group, type, ReduceOp::max, count));
      if (type == DType::i32) note(check_all_reduce(group, type, ReduceOp::bit_or, count));
      note(check_broadcast(group, type, count, group.size() - 1));
    }
    note(check_exchange(group, type));
    group.barrier();
  }
  return digest;
}

Digest check_small_verbs(Communicator& group) {
  Digest digest = 0;
  const auto note = [&](Digest next) { digest = digest * 1000003 + next; };
  for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i32}) {
    for (const Shares shares : {Shares::equal, Shares::uneven, Shares::zeros, Shares::empty})
      for (const bool in_place : {false, true})
        note(check_all_gather(group, type, shares, in_place));
    for (const index_t count : {0, 1, 512, 513}) {
      note(check_all_reduce(group, type, ReduceOp::sum, count));
      if (!is_half(type)) note(check_all_reduce(group, type, ReduceOp::max, count));
      if (type == DType::i32) note(check_all_reduce(group, type, ReduceOp::bit_or, count));
      note(check_broadcast(group, type, count, group.size() - 1));
      note(check_broadcast(group, type, count, group.size() / 2));
    }
    group.barrier();
  }
  // In chunks, and parts that are too long for rounds.
  note(check_broadcast(group, DType::f32, 300001, 3 % group.size()));
  note(check_all_gather(group, DType::f32, Shares::large, false));
  note(check_exchange(group, DType::bf16));
  return digest;
}

}  // namespace t3d::test
