// Leaves: the gradients that aggregation makes one of. Every replica brings one, or, where
// aggregate.leaves cuts its samples further, several; a leaf is the mean gradient over its own
// samples.
#pragma once
#include <vector>

#include "tensor3d/context.hpp"

namespace t3d {

/// Who brings what; the same on every rank.
struct Leaves {
  index_t replicas = 1, per_replica = 1;
  std::vector<double> weights;  // [count()] samples / reference batch, by replica, then leaf
  [[nodiscard]] index_t count() const { return replicas * per_replica; }
  /// Sum over the leaves of one replica, or of all.
  [[nodiscard]] double weight_of(index_t replica) const;
  [[nodiscard]] double total() const;
};

/// Keeps the leaves of this replica until all are there. Only where there are several.
class LeafStore {
 public:
  LeafStore(const Context& context, index_t leaves) : context_(context), leaves_(leaves) {}

  [[nodiscard]] index_t leaves() const { return leaves_; }
  /// shards[b] = this leaf's shard of bucket b, [1, count].
  void keep(index_t leaf, std::size_t bucket, ConstTensorView shard);
  /// [leaves, count] of a bucket: all that was kept, or the shard itself where a replica is a leaf.
  [[nodiscard]] ConstTensorView all(std::size_t bucket, ConstTensorView last_shard);
  /// The same after all().
  [[nodiscard]] ConstTensorView kept(std::size_t bucket) const { return rows_[bucket]; }
  void drop() { rows_.clear(); }

 private:
  const Context& context_;
  index_t leaves_;
  std::vector<Tensor> rows_;  // by bucket
};

}  // namespace t3d
