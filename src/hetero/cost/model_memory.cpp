#include <algorithm>

#include "hetero/cost/layer_memory.hpp"

namespace t3d {
namespace {

/// Blocks walked one by one at either end; one stands for those between.
constexpr index_t kEnds = 2;

}  // namespace

ModelMemory::ModelMemory(MemoryWalk& walk, const RankView& rank)
    : walk_(walk),
      rank_(rank),
      tied_(rank.model.tied_embeddings),
      normed_heads_(rank.model.qk_norm),
      adapted_(rank.model.lora.on()) {
  const std::array<BucketSize, kBucketKinds> sizes = bucket_sizes(rank);
  const index_t layers = rank.model.layers;
  table_.size = sizes[0];
  hidden_vectors_.size = sizes[1];
  inner_vectors_.size = sizes[2];
  head_vectors_.size = sizes[3];
  hidden_adapters_.size = sizes[4];
  inner_adapters_.size = sizes[5];
  head_.size = sizes[kHeadKind];
  const index_t walked = rank.frozen.alike() ? std::min(layers, 2 * kEnds + 1) : layers;
  blocks_.resize(static_cast<std::size_t>(walked));
  for (index_t at = 0; at < walked; ++at) {
    const bool middle = at == kEnds && layers > walked;
    needs_input_.emplace_back();
    const index_t number = at <= kEnds ? at : at + layers - walked;
    for (std::size_t kind = 0; kind < 4; ++kind) {
      BucketMemory& bucket = blocks_[static_cast<std::size_t>(at)][kind];
      bucket.size = sizes[kFirstMatrix + kind];
      bucket.times = middle ? layers - 2 * kEnds : 1;
      bucket.number = shared() + 4 * static_cast<std::size_t>(number) + kind;
      bucket.frozen = rank.frozen.matrix(number, kind);
      needs_input_.back()[kind] = rank.needs_input(number, kind);
    }
  }
  for (BucketMemory* bucket : {&table_, &hidden_vectors_, &inner_vectors_, &head_vectors_,
                               &hidden_adapters_, &inner_adapters_, &head_})
    bucket->frozen = bucket->size.trained == 0;
  shared_vectors_ = {&hidden_vectors_, &inner_vectors_};
  if (normed_heads_) shared_vectors_.push_back(&head_vectors_);
  if (adapted_)
    shared_vectors_.insert(shared_vectors_.end(), {&hidden_adapters_, &inner_adapters_});
  add(table_);
  for (BucketMemory* bucket : shared_vectors_) add(*bucket);
  if (!tied_) add(head_);
  for (auto& block : blocks_)
    for (BucketMemory& bucket : block) add(bucket);
  for (std::size_t at = 0; at < shared(); ++at) all_[at]->number = at;
}

// Kept blocks stay from step to step.
void ModelMemory::add(BucketMemory& bucket) {
  all_.push_back(&bucket);
  bucket.master =
      walk_.take(MemoryKind::weights, bucket.size.shard * size_of(rank_.accumulator), bucket.times);
  if (rank_.plan.keep_weights && !block_is_master(bucket))
    bucket.block = walk_.take(MemoryKind::gathered, block_bytes(bucket), bucket.times);
}

index_t ModelMemory::block_bytes(const BucketMemory& bucket) const {
  return bucket.size.count * size_of(bucket.size.matrices ? rank_.activation : rank_.accumulator);
}

bool ModelMemory::block_is_master(const BucketMemory& bucket) const {
  return bucket.size.members == 1 &&
         (!bucket.size.matrices || rank_.activation == rank_.accumulator);
}

void ModelMemory::prefetch(BucketMemory& bucket) {
  if (bucket.block.there() || block_is_master(bucket)) return;
  bucket.block = walk_.take(MemoryKind::gathered, block_bytes(bucket));
}

void ModelMemory::release(BucketMemory& bucket) {
  if (!rank_.plan.keep_weights) bucket.block.reset();
}

// A rank alone has the whole gradient as its share.
void ModelMemory::ensure_gradient(BucketMemory& bucket) {
  if (bucket.frozen) return;
  Held& target = bucket.size.members == 1 ? bucket.shard : bucket.gradient;
  if (!target.there())
    target = walk_.take(MemoryKind::gradients, bucket.size.count * size_of(rank_.accumulator));
}

void ModelMemory::start_reduce(BucketMemory& bucket) {
  if (bucket.frozen) return;
  ensure_gradient(bucket);
  if (bucket.size.members > 1)
    bucket.shard =
        walk_.take(MemoryKind::gradients, bucket.size.shard * size_of(rank_.accumulator));
}

void ModelMemory::finish_reduce(BucketMemory& bucket) {
  bucket.gradient.reset();
  bucket.shard.set_times(bucket.times);
}

void ModelMemory::block_done(std::size_t block, bool last, const BucketDone& done) {
  if (last)
    for (BucketMemory& bucket : blocks_[block]) start_reduce(bucket);
  if (last && done && block + 1 < blocks_.size())
    for (BucketMemory& bucket : blocks_[block + 1]) {
      finish_reduce(bucket);
      done(bucket);
    }
  // Those that this one stands for: where sums are finished soon, all but the last one's are.
  // One after the other, so never more than one of their shards beside a gradient whole.
  for (BucketMemory& bucket : blocks_[block]) {
    const bool finished = last && done && bucket.size.members > 1;
    bucket.gradient.set_times(finished ? 1 : bucket.times);
  }
  for (BucketMemory& bucket : blocks_[block]) bucket.shard.set_times(bucket.times);
}

void ModelMemory::reduce_shared() {
  start_reduce(table_);
  for (BucketMemory* bucket : shared_vectors_) start_reduce(*bucket);
}

void ModelMemory::drop_gradients() {
  for (BucketMemory* bucket : all_) {
    bucket->shard.reset();
    bucket->gradient.reset();
  }
}

}  // namespace t3d
