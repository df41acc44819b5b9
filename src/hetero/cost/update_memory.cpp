#include "hetero/cost/update_memory.hpp"

#include <algorithm>

namespace t3d {
namespace {

/// One optimizer's state and what an update with it needs.
class OptimizerMemory {
 public:
  OptimizerMemory(MemoryWalk& walk, const RankView& rank, ModelMemory& model)
      : walk_(walk), rank_(rank) {
    const OptimizerKind kind = rank.plan.optimizer;
    const index_t acc = size_of(rank.accumulator);
    index_t tensors = 0;
    for (const BucketMemory* bucket : model.all()) {
      tensors += bucket->times * bucket->size.entries;
      if (bucket->frozen) continue;
      const auto add = [&] {
        state_.push_back(walk.take(MemoryKind::optimizer, bucket->size.shard * acc, bucket->times));
      };
      add();
      const bool orthogonal = kind == OptimizerKind::muon && bucket->number >= model.shared();
      if (kind != OptimizerKind::sgd && !orthogonal) add();
    }
    if (kind == OptimizerKind::lamb)
      for (const index_t count : {2 * tensors, tensors, tensors})
        state_.push_back(walk.take(MemoryKind::optimizer, count * size_of(DType::f64)));
  }
  void update() {
    if (rank_.plan.optimizer == OptimizerKind::muon) walk_whole_matrices(walk_, rank_);
  }

 private:
  MemoryWalk& walk_;
  const RankView& rank_;
  std::vector<Held> state_;
};

class SharedMemory final : public UpdateMemory {
 public:
  SharedMemory(MemoryWalk& walk, const RankView& rank, ModelMemory& model)
      : model_(model),
        aggregation_(make_aggregation_memory(walk, rank, model)),
        optimizer_(walk, rank, model),
        leaves_(rank.plan.leaves_per_replica()),
        started_(model.all().size(), false) {}

  void bucket_done(BucketMemory& bucket) override {
    const auto& all = model_.all();
    start(static_cast<std::size_t>(std::find(all.begin(), all.end(), &bucket) - all.begin()));
  }
  void leaf_done(index_t leaf) override {
    for (std::size_t bucket = 0; bucket < started_.size(); ++bucket)
      if (leaf + 1 == leaves_)
        start(bucket);
      else if (!model_.all()[bucket]->frozen)
        aggregation_->keep(bucket);
  }
  void aggregate() override { aggregation_->finish(); }
  void apply() override { optimizer_.update(); }
  [[nodiscard]] index_t table_bytes() const override { return aggregation_->table_bytes(); }

 private:
  void start(std::size_t bucket) {
    if (!started_[bucket] && !model_.all()[bucket]->frozen) aggregation_->start(bucket);
    started_[bucket] = true;
  }

  ModelMemory& model_;
  std::unique_ptr<AggregationMemory> aggregation_;
  OptimizerMemory optimizer_;
  index_t leaves_;
  std::vector<bool> started_;
};

class LocalMemory final : public UpdateMemory {
 public:
  LocalMemory(MemoryWalk& walk, const RankView& rank, ModelMemory& model)
      : walk_(walk),
        rank_(rank),
        model_(model),
        aggregation_(make_aggregation_memory(walk, rank, model)),
        leaves_(rank.plan.leaves_per_replica()),
        change_(model.all().size()) {
    for (index_t leaf = 0; leaf < leaves_; ++leaf) optimizers_.emplace_back(walk, rank, model);
  }

  void bucket_done(BucketMemory&) override {}
  void leaf_done(index_t leaf) override {
    std::vector<Held> before;
    for (const BucketMemory* bucket : model_.all()) {
      if (bucket->frozen) continue;
      before.push_back(shard_of(*bucket));
      before.back().set_times(bucket->times);
    }
    optimizers_[static_cast<std::size_t>(leaf)].update();
    for (std::size_t at = 0; at < change_.size(); ++at) {
      if (model_.all()[at]->frozen) continue;
      change_[at] = shard_of(*model_.all()[at]);
      change_[at].set_times(model_.all()[at]->times);
      if (leaf + 1 == leaves_)
        aggregation_->start(at);
      else
        aggregation_->keep(at);
    }
  }
  void aggregate() override { aggregation_->finish(); }
  void apply() override { change_.clear(); }
  [[nodiscard]] index_t table_bytes() const override { return aggregation_->table_bytes(); }

 private:
  [[nodiscard]] Held shard_of(const BucketMemory& bucket) {
    return walk_.take(MemoryKind::gradients, bucket.size.shard * size_of(rank_.accumulator));
  }

  MemoryWalk& walk_;
  const RankView& rank_;
  ModelMemory& model_;
  std::unique_ptr<AggregationMemory> aggregation_;
  index_t leaves_;
  std::vector<OptimizerMemory> optimizers_;
  std::vector<Held> change_;
};

}  // namespace

std::unique_ptr<UpdateMemory> make_update_memory(MemoryWalk& walk, const RankView& rank,
                                                 ModelMemory& model) {
  if (rank.plan.updates_locally()) return std::make_unique<LocalMemory>(walk, rank, model);
  return std::make_unique<SharedMemory>(walk, rank, model);
}

}  // namespace t3d
