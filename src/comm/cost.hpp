// What one rank sends in each collective: pure functions, the formula side of the ledger.
//
// Groups of up to kFlatRanks ranks: every rank exchanges with every other, which moves the least
// possible bytes in one hop (Chan et al. 2007). Larger groups send O(log P) messages
// per rank where latency counts: small all-gathers (Bruck et al. 1997), small all-reduces
// (recursive doubling) and broadcasts (a binomial tree).
//
// A message here is one per peer and operation, or per peer and round: long ones travel in chunks,
// which are not counted one by one.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "core/dtype.hpp"
#include "core/partition.hpp"
#include "core/types.hpp"

namespace t3d {

/// What a rank sends to others.
struct Traffic {
  index_t bytes = 0;
  index_t messages = 0;
  Traffic& operator+=(const Traffic& other) {
    bytes += other.bytes;
    messages += other.messages;
    return *this;
  }
  friend Traffic operator+(Traffic a, const Traffic& b) { return a += b; }
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

/// Groups of up to this many ranks exchange pairwise, whatever the size.
inline constexpr int kFlatRanks = 16;
/// An all-gather in rounds is for parts of up to this many bytes on average: longer ones are bound
/// by bandwidth, and forwarding them costs copies (bench/collectives).
inline constexpr index_t kSmallPart = 1024;
/// Elements of an all-reduce in one go; larger ones are a reduce-scatter and an all-gather.
inline constexpr index_t kSmallAllReduce = 512;

/// Whether an all-gather of `bytes` in all among `ranks` goes in rounds.
[[nodiscard]] bool gathers_in_rounds(index_t bytes, int ranks);
/// Blocks that every rank sends in the round of an all-gather at `distance` = 1, 2, 4, ... < ranks:
/// its own and those of the ranks after it, to the rank `distance` before it.
[[nodiscard]] int blocks_in_round(int distance, int ranks);
/// Ranks that recursive doubling goes over, the largest power of two <= ranks. The others give
/// their numbers to rank - that and get the result from there.
[[nodiscard]] int doubling_ranks(int ranks);
/// In which format partial results of a small reduction travel: 16-bit numbers as fp32.
[[nodiscard]] DType partial_type_of(DType dtype);
/// ceil(log2 n), the rounds of a barrier.
[[nodiscard]] int rounds_of(int ranks);

/// Pairwise: own part to each of the others. In rounds: as blocks_in_round says.
[[nodiscard]] Traffic all_gather_traffic(std::span<const index_t> counts, int rank, DType dtype);
/// The same where begin(r) elements lie before the part of rank r; begin(ranks) = all of them.
template <class Begin>
[[nodiscard]] Traffic all_gather_traffic(int ranks, int rank, DType dtype, const Begin& begin) {
  const index_t size = size_of(dtype), own = begin(rank + 1) - begin(rank);
  if (ranks <= kFlatRanks || !gathers_in_rounds(begin(ranks) * size, ranks))
    return {(ranks - 1) * own * size, own > 0 ? ranks - 1 : 0};
  // Each round sends on what the rounds before have brought: the parts of a growing range of ranks.
  Traffic traffic;
  for (int distance = 1; distance < ranks; distance *= 2) {
    const int end = rank + blocks_in_round(distance, ranks);
    const index_t elements =
        begin(std::min(end, ranks)) - begin(rank) + (end > ranks ? begin(end - ranks) : 0);
    traffic += {elements * size, elements > 0 ? 1 : 0};
  }
  return traffic;
}
/// Every other rank's part to its owner.
[[nodiscard]] Traffic reduce_scatter_traffic(std::span<const index_t> counts, int rank,
                                             DType dtype);
/// Up to kSmallAllReduce elements: everything to everybody, or over a tree; else reduce-scatter +
/// all-gather over Partition::even(count, ranks).
[[nodiscard]] Traffic all_reduce_traffic(index_t count, int ranks, int rank, DType dtype);
/// Up to kFlatRanks ranks the root sends to each of the others; more form a binomial tree.
[[nodiscard]] Traffic broadcast_traffic(index_t count, int ranks, int rank, int root, DType dtype);
/// Empty messages.
[[nodiscard]] Traffic barrier_traffic(int ranks);

/// The bytes of the above.
[[nodiscard]] inline index_t all_gather_bytes(std::span<const index_t> counts, int rank,
                                              DType dtype) {
  return all_gather_traffic(counts, rank, dtype).bytes;
}
[[nodiscard]] inline index_t reduce_scatter_bytes(std::span<const index_t> counts, int rank,
                                                  DType dtype) {
  return reduce_scatter_traffic(counts, rank, dtype).bytes;
}
[[nodiscard]] inline index_t all_reduce_bytes(index_t count, int ranks, int rank, DType dtype) {
  return all_reduce_traffic(count, ranks, rank, dtype).bytes;
}
[[nodiscard]] inline index_t broadcast_bytes(index_t count, int ranks, int rank, int root,
                                             DType dtype) {
  return broadcast_traffic(count, ranks, rank, root, dtype).bytes;
}

/// Children of `rank` in the broadcast's tree, the largest subtree first: ranks of the group.
[[nodiscard]] std::vector<int> broadcast_children(int ranks, int rank, int root);
/// From whom `rank` hears; the root from itself.
[[nodiscard]] int broadcast_parent(int ranks, int rank, int root);

/// Bytes of the receive buffer of a reduce-scatter (or of a large all-reduce) whose part here has
/// `count` elements; kept for the next one.
[[nodiscard]] index_t reduction_buffer_bytes(index_t count, int ranks, DType dtype);

}  // namespace t3d
