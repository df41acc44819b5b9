// The collectives as state machines over lanes of messages. Groups of up to kFlatRanks ranks go
// pairwise, so that each moves the least possible bytes in one hop; larger ones take the O(log P)
// messages of comm/rounds.hpp where latency counts.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "comm/engine.hpp"

namespace t3d {

/// Who takes part and under which tag. Only read while an operation is made.
struct Party {
  Engine& engine;
  const std::vector<int>& members;  // world ranks in the group's order
  int rank = 0;                     // in the group
  int tag = 0;
  [[nodiscard]] int size() const { return static_cast<int>(members.size()); }
  /// World rank of a member; numbers beyond the last begin anew.
  [[nodiscard]] int member(int at) const { return members[static_cast<std::size_t>(at % size())]; }
};

/// Between memory that may be the same.
void copy_bytes(void* to, const void* from, index_t bytes);

using OperationPtr = std::unique_ptr<Operation>;

/// Own part to each of the others; theirs straight into place. Small ones of many ranks in rounds.
[[nodiscard]] OperationPtr make_all_gather(const Party& party, ConstTensorView part,
                                           TensorView whole, std::span<const index_t> counts);
/// Everybody's piece to its owner, which reduces in rank order, chunk by chunk.
[[nodiscard]] OperationPtr make_reduce_scatter(const Party& party, ReduceOp op,
                                               ConstTensorView whole, TensorView part,
                                               std::span<const index_t> counts);
/// Up to kSmallAllReduce elements everything to everybody or over a tree, else the two above one
/// after another; the second under `second_tag`.
[[nodiscard]] OperationPtr make_all_reduce(const Party& party, int second_tag, TensorView x,
                                           ReduceOp op);
[[nodiscard]] OperationPtr make_broadcast(const Party& party, TensorView x, int root);
[[nodiscard]] OperationPtr make_exchange(const Party& party, std::span<const Exchange> messages);
/// Those of `rank` to itself, each with what it sends and where it goes: copies.
[[nodiscard]] std::vector<Exchange> messages_to_self(int rank, std::span<const Exchange> messages);
/// ceil(log2 n) rounds of empty messages at doubling distances.
[[nodiscard]] OperationPtr make_barrier(const Party& party);

}  // namespace t3d
