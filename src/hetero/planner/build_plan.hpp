// From a shape to a plan: the mechanical part, the same whether the shape was written in the input
// or found by the planner. Pure arithmetic.
#pragma once
#include <optional>
#include <vector>

#include "core/plan.hpp"

namespace t3d {

/// Everything that a plan depends on beside its shape.
struct PlanRecipe {
  Plan base;              // its place and replicas are not read
  index_t sequences = 0;  // of a step, over all replicas
  index_t micro = 0;      // most of a micro-batch; 0 = all at once
  index_t leaves = 1;     // per replica
  AttentionRule attention = AttentionRule::automatic;
  ReduceType reduce = ReduceType::automatic;
  KeepRule keep = KeepRule::automatic;
  double gather_budget_mib = 1024;  // for keep = automatic
};

/// What one replica is to hold and do. What is not given is cut evenly.
struct ReplicaShape {
  Cuboid cuboid{1, 1, 1};
  index_t sequences = 0;             // of a step
  std::vector<double> token_speeds;  // of the slabs: a micro-batch's sequences are dealt by these
  std::optional<Partition> hidden, groups, ffn, vocab;
  std::vector<index_t> storage;  // sizes of the shards at rest over i, relative
  std::vector<index_t> whole;    // as ReplicaPlan's
  friend bool operator==(const ReplicaShape&, const ReplicaShape&) = default;
};

struct PlanShape {
  std::vector<ReplicaShape> replicas;
  std::vector<int> place;  // as Plan::place
};

/// Throws Error(config) where the plan would not be sound (Plan::check).
[[nodiscard]] Plan build_plan(const PlanRecipe& recipe, const PlanShape& shape);

/// Lattice of a feature dimension that is cut in `parts`: 16 elements where every part still gets
/// several units, else 1.
[[nodiscard]] index_t feature_unit(index_t length, index_t parts);

}  // namespace t3d
