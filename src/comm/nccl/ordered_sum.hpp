// The arithmetic of ordered reductions on the GPU: comm/reduce.hpp's definition, bit for bit.
#pragma once
#include "comm/communicator.hpp"

namespace t3d::nccl {

/// One piece of every rank: the own one where it was, those of the others one behind another, each
/// `stride` elements after the one before.
struct Pieces {
  const void* own = nullptr;
  const void* others = nullptr;
  index_t stride = 0;
  int rank = 0, ranks = 1;
};

/// to[e] = piece 0 [e] op piece 1 [e] op ... in rank order; formats as check_reducible allows. `to`
/// may be the own piece. Queued on `queue`.
void ordered_reduce(Queue& queue, ReduceOp op, DType type, const Pieces& pieces, DType to_type,
                    void* to, index_t count);

/// to = the sum of the rows of `rows` [ranks, count] over the tree of communicator.hpp. `to` has
/// their format and lies outside of them.
void tree_reduce(Queue& queue, ReduceOp op, DType type, ConstTensorView rows, TensorView to);

}  // namespace t3d::nccl
