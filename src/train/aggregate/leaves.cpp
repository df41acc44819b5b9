#include "train/aggregate/leaves.hpp"

#include <numeric>

namespace t3d {

double Leaves::weight_of(index_t replica) const {
  const auto first = weights.begin() + replica * per_replica;
  return std::accumulate(first, first + per_replica, 0.0);
}

double Leaves::total() const { return std::accumulate(weights.begin(), weights.end(), 0.0); }

void LeafStore::keep(index_t leaf, std::size_t bucket, ConstTensorView shard) {
  if (rows_.size() <= bucket) rows_.resize(bucket + 1);
  Tensor& rows = rows_[bucket];
  if (!rows.allocated())
    rows = context_.make(shard.dtype, leaves_, shard.cols, MemoryKind::gradients);
  context_.ops.copy(context_.queue, shard, rows.view().row_range(leaf, 1));
}

ConstTensorView LeafStore::all(std::size_t bucket, ConstTensorView last_shard) {
  if (leaves_ == 1) return last_shard;
  keep(leaves_ - 1, bucket, last_shard);
  return rows_[bucket];
}

}  // namespace t3d
