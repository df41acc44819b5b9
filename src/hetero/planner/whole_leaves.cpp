#include "hetero/planner/whole_leaves.hpp"

#include "hetero/planner/slab_sequences.hpp"
#include "hetero/solve/apportion.hpp"

namespace t3d {

Plan build_with_whole_leaves(const PlanRecipe& recipe, const PlanShape& shape) {
  if (recipe.leaves == 1 || shape.replicas.size() == 1) return build_plan(recipe, shape);
  const auto replicas = std::ssize(shape.replicas);
  PlanShape even = shape;
  std::vector<double> speeds;
  const Partition shares = Partition::even("shares", recipe.sequences, replicas);
  for (index_t d = 0; d < replicas; ++d) {
    ReplicaShape& replica = even.replicas[static_cast<std::size_t>(d)];
    speeds.push_back(static_cast<double>(replica.sequences));
    replica.sequences = shares.size(d);
  }
  Plan plan = build_plan(recipe, even);
  const index_t unit = leaf_unit(plan);
  if (unit == 0) return plan;
  const std::vector<index_t> most(speeds.size(), kMostLeaves / replicas);
  const std::vector<index_t> leaves = min_max_apportion(recipe.sequences / unit, speeds, most);
  std::vector<index_t> slabs;
  for (index_t d = 0; d < replicas; ++d) {
    const index_t own = leaves[static_cast<std::size_t>(d)] * unit;
    for (const index_t size : plan.replica(d).tokens_of(own).sizes()) slabs.push_back(size);
  }
  return with_slab_sequences(plan, slabs, recipe.micro);
}

}  // namespace t3d
