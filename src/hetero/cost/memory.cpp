#include "hetero/cost/memory.hpp"

#include <algorithm>

#include "comm/cost.hpp"
#include "hetero/cost/update_memory.hpp"

namespace t3d {
namespace {

/// A training step from the first micro-batch to the new weights.
class Step {
 public:
  explicit Step(const RankView& rank)
      : rank_(rank), model_(walk_, rank), update_(make_update_memory(walk_, rank, model_)) {
    // The sum of losses; a step's numbers, the factor of clipping (train/step/trainer.cpp).
    constexpr index_t kSmall = 3;
    small_ = walk_.take(MemoryKind::workspace, size_of(DType::f64), kSmall);
    if (rank.plan.updates_locally()) small_.set_times(2 * kSmall);  // and squares of local updates
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
  [[nodiscard]] index_t table_bytes() const { return update_->table_bytes(); }

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

/// Replicas that are cut alike sum their gradients with all-reduces, each begun when its bucket is
/// complete.
bool sums_over_replicas(const Plan& plan) {
  const AggregateConfig& aggregate = plan.aggregate;
  return plan.replicas.size() > 1 && plan.alike() &&
         (aggregate.method != AggregateMethod::adasum ||
          aggregate.algorithm == AggregateAlgorithm::flat);
}

// Sums of two blocks' gradients are on their way at once, one of a table's, and one of activations;
// those over replicas, all of them: nobody waits for one before the update.
index_t message_bytes(const RankView& rank) {
  constexpr index_t kBlocksOnTheirWay = 2;
  const auto replicas = static_cast<int>(rank.plan.replicas.size());
  const bool shares = sums_over_replicas(rank.plan);
  index_t gradients = 0, table = 0, over_replicas = 0;
  const auto sizes = bucket_sizes(rank);
  for (std::size_t kind = 0; kind < sizes.size(); ++kind) {
    const BucketSize& size = sizes[kind];
    if (!size.matrices || size.trained == 0) continue;
    const index_t buffer =
        reduction_buffer_bytes(size.shard, static_cast<int>(size.members), rank.accumulator);
    if (kind >= kFirstMatrix)
      gradients += buffer;
    else
      table = std::max(table, buffer);
    if (shares)
      over_replicas +=
          size.copies * reduction_buffer_bytes(size.shard / replicas, replicas, rank.accumulator);
  }
  const Rows rows(rank, rank.plan.largest_micro());
  const Side hidden = hidden_side(rank, rows), inner = inner_side(rank, rows, rank.up);
  const index_t activations =
      std::max(reduction_buffer_bytes(hidden.own(), static_cast<int>(hidden.members), rank.reduce),
               reduction_buffer_bytes(inner.own(), static_cast<int>(inner.members), rank.reduce));
  return kBlocksOnTheirWay * gradients + table + over_replicas + activations;
}

}  // namespace

MemoryCost memory_cost(const Plan& plan, const Coord& coord, const CostMemoPtr& memo) {
  const RankView rank(plan, coord, memo);
  Step step(rank);
  step.run();
  MemoryCost cost;
  cost.by_kind = step.walk().at_peak();
  cost.live_peak = step.walk().live_peak();
  cost.tensors_peak = step.walk().reserved_peak();
  cost.messages = message_bytes(rank);
  cost.tables = step.table_bytes();
  return cost;
}

StateAtRest state_at_rest(const Plan& plan, const Coord& coord) {
  const RankView rank(plan, coord);
  MemoryWalk walk;
  ModelMemory model(walk, rank);
  const auto update = make_update_memory(walk, rank, model);
  return {parameters_at_rest(plan, coord) * size_of(rank.accumulator),
          walk.at_peak()[static_cast<std::size_t>(MemoryKind::optimizer)]};
}

index_t parameters_at_rest(const Plan& plan, const Coord& coord) {
  const RankView rank(plan, coord);
  index_t sum = 0;
  for (const BucketSize& size : bucket_sizes(rank)) sum += size.copies * size.shard;
  return sum;
}

}  // namespace t3d
