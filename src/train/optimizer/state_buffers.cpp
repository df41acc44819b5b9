#include "train/optimizer/state_buffers.hpp"

#include "core/error.hpp"

namespace t3d {

StateBuffers::StateBuffers(std::string kind, const Context& context,
                           const std::vector<ParamBucket*>& buckets, const HasState& has_state)
    : kind_(std::move(kind)), context_(context), buckets_(buckets), shards_(buckets.size()) {
  for (const ParamBucket* bucket : buckets)
    has_.push_back(!bucket->frozen() && (!has_state || has_state(*bucket)));
}

void StateBuffers::clear() {
  for (std::size_t bucket = 0; bucket < shards_.size(); ++bucket) {
    if (!has_[bucket]) continue;
    Tensor& shard = shards_[bucket];
    if (!shard.allocated())
      shard = context_.make(context_.accumulator(), 1, buckets_[bucket]->shard_count(),
                            MemoryKind::optimizer);
    context_.ops.fill(context_.queue, shard, 0);
  }
}

void StateBuffers::adopt(std::size_t bucket, Tensor shard) {
  T3D_CHECK(has_[bucket] && shard.cols() == buckets_[bucket]->shard_count(),
            "{} of {} has {} elements", kind_, buckets_[bucket]->name(), shard.cols());
  shards_[bucket] = std::move(shard);
}

}  // namespace t3d
