// The collectives as state machines over lanes of messages; all pairwise, so each moves the least
// possible bytes and needs one hop.
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
};

using OperationPtr = std::unique_ptr<Operation>;

/// Own part to each of the others; theirs straight into place.
[[nodiscard]] OperationPtr make_all_gather(const Party& party, ConstTensorView part,
                                           TensorView whole, std::span<const index_t> counts);
/// Everybody's piece to its owner, which reduces in rank order, chunk by chunk.
[[nodiscard]] OperationPtr make_reduce_scatter(const Party& party, ReduceOp op,
                                               ConstTensorView whole, TensorView part,
                                               std::span<const index_t> counts);
/// Up to kSmallAllReduce elements everything to everybody, else the two above one after another;
/// the second under `second_tag`.
[[nodiscard]] OperationPtr make_all_reduce(const Party& party, int second_tag, TensorView x,
                                           ReduceOp op);
[[nodiscard]] OperationPtr make_broadcast(const Party& party, TensorView x, int root);
[[nodiscard]] OperationPtr make_exchange(const Party& party, std::span<const Exchange> messages);
/// Those of `rank` to itself, each with what it sends and where it goes: copies.
[[nodiscard]] std::vector<Exchange> messages_to_self(int rank, std::span<const Exchange> messages);
/// ceil(log2 n) rounds of empty messages at doubling distances.
[[nodiscard]] OperationPtr make_barrier(const Party& party);

}  // namespace t3d
