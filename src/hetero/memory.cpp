#include "hetero/memory.hpp"

#include "hetero/update_memory.hpp"

namespace t3d {
namespace {

/// A training step from the first micro-batch to the new weights.
class Step {
 public:
  explicit Step(const RankView& rank)
      : rank_(rank),
        model_(walk_, rank),
        update_(make_update_memory(walk_, rank, model_)) {
    // The sum of losses; a step's numbers, the factor of clipping (train/step/trainer.cpp).
    constexpr index_t kSmall = 3;
    small_ = walk_.take(MemoryKind::workspace, size_of(DType::f64), kSmall);
    if (rank.plan.aggregate.method == AggregateMethod::adasum &&
        rank.plan.aggregate.placement == AggregatePlacement::post)
      small_.set_times(2 * kSmall);  // and squares of local updates
  }

  void run() {
    const auto& leaves = rank_.cut.leaves;
    for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      const bool last = leaf + 1 == leaves.size();
      // What the first leaf leaves behind is there for the second; others like it add nothing.
      if (leaf < 2 || last || leaves[leaf] != leaves[leaf - 1]) run_leaf(leaf, last);
    }
    update_->aggregate();
    update_->apply();
    model_.drop_gradients();
  }
  [[nodiscard]] const MemoryWalk& walk() const { return walk_; }

 private:
  void run_leaf(std::size_t leaf, bool last) {
    const BucketDone done =
        last ? BucketDone([this](BucketMemory& bucket) { update_->bucket_done(bucket); })
             : BucketDone();
    const std::vector<index_t>& micros = rank_.cut.leaves[leaf];
    for (std::size_t micro = 0; micro < micros.size(); ++micro) {
      const bool end = micro + 1 == micros.size();
      // The second one finds the gradients of the first; so do those after it.
      if (micro < 2 || end || micros[micro] != micros[micro - 1])
        walk_training(walk_, rank_, model_, micros[micro], end, end ? done : BucketDone());
    }
    if (micros.empty()) walk_nothing(model_, done);
    for (BucketMemory* bucket : model_.all()) model_.finish_reduce(*bucket);
    update_->leaf_done(static_cast<index_t>(leaf));
    if (!last) model_.drop_gradients();
  }

  MemoryWalk walk_;
  const RankView& rank_;
  ModelMemory model_;
  std::unique_ptr<UpdateMemory> update_;
  Held small_;
};

}  // namespace

MemoryCost memory_cost(const Plan& plan, const Coord& coord) {
  const RankView rank(plan, coord);
  Step step(rank);
  step.run();
  MemoryCost cost;
  cost.by_kind = step.walk().at_peak();
  cost.live_peak = step.walk().live_peak();
  cost.tensors_peak = step.walk().reserved_peak();
  return cost;
}

index_t parameters_at_rest(const Plan& plan, const Coord& coord) {
  const RankView rank(plan, coord);
  index_t sum = 0;
  for (const BucketSize& size : bucket_sizes(rank)) sum += size.copies * size.shard;
  return sum;
}

}  // namespace t3d
