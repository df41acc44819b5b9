// Plans of unequal ranks whose leaves keep their samples (hetero/planner/whole_leaves.hpp).
#include "hetero/planner/whole_leaves.hpp"

#include "hetero/planner/planner.hpp"
#include "hetero/planner/slab_sequences.hpp"
#include "support/catch.hpp"
#include "support/planner_case.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

using Counts = std::vector<index_t>;

PlanRecipe adasum_recipe(int ranks, index_t sequences, index_t leaves) {
  PlanRecipe recipe = small_recipe(ranks, sequences);
  recipe.leaves = recipe.base.aggregate.leaves = leaves;
  recipe.base.aggregate.method = AggregateMethod::adasum;
  recipe.base.aggregate.placement = AggregatePlacement::gain;
  return recipe;
}

/// The sizes of all leaves with samples, in the order of their samples.
Counts leaf_sizes(const Plan& plan) {
  Counts sizes;
  for (const ReplicaPlan& replica : plan.replicas)
    for (std::size_t leaf = 0; leaf < replica.leaves.size(); ++leaf)
      if (replica.sequences_of(leaf) > 0) sizes.push_back(replica.sequences_of(leaf));
  return sizes;
}

PlanRequest request_of(const PlanRecipe& recipe, index_t replicas, const Cuboid& cuboid) {
  PlanRequest request;
  request.recipe = recipe;
  request.replicas = replicas;
  request.cuboids = {cuboid};
  return request;
}

}  // namespace

TEST_CASE("unequal ranks get other leaves, and every leaf keeps its samples") {
  const PlanRecipe recipe = adasum_recipe(4, 48, 6);  // 12 leaves of 4
  for (const Cuboid& cuboid : {Cuboid{2, 1, 1}, Cuboid{1, 2, 1}}) {
    const PlanRequest request = request_of(recipe, 2, cuboid);
    const Plan plan = plan_shape(request, speeds_of({1, 1, 0.5, 0.5})).plan;
    CHECK(leaf_sizes(plan) == Counts(12, 4));
    CHECK(plan.replica(0).sequences() == 32);
    CHECK(plan.leaves_per_replica() == 8);
    CHECK(leaf_unit(plan) == 4);  // so they may move during the run
    const Plan even = plan_shape(request, speeds_of({1, 1, 1, 1})).plan;
    CHECK(leaf_sizes(even) == leaf_sizes(plan));
  }
  // Inside a replica the slabs of every leaf follow the speeds.
  const Plan slabs = plan_shape(request_of(recipe, 2, {2, 1, 1}), speeds_of({1, 0.3, 1, 0.3})).plan;
  CHECK(leaf_sizes(slabs) == Counts(12, 4));
}

TEST_CASE("leaves that cannot move stay where the even plan has them") {
  // Of different sizes.
  const PlanRecipe odd = adasum_recipe(2, 22, 4);
  CHECK(leaf_sizes(plan_shape(request_of(odd, 2, {1, 1, 1}), speeds_of({1, 0.5})).plan) ==
        Counts{3, 3, 3, 2, 3, 3, 3, 2});
  // With an optimizer each.
  PlanRecipe post = adasum_recipe(2, 24, 4);
  post.base.aggregate.placement = AggregatePlacement::post;
  const Plan plan = plan_shape(request_of(post, 2, {1, 1, 1}), speeds_of({1, 0.5})).plan;
  CHECK(leaf_sizes(plan) == Counts(8, 3));
  CHECK(plan.leaves_per_replica() == 4);
}

TEST_CASE("no more leaves than Adasum combines") {
  const PlanRequest request = request_of(adasum_recipe(4, 56, 14), 4, {1, 1, 1});
  const Plan plan = plan_shape(request, speeds_of({1, 1, 1, 0.1})).plan;
  CHECK(leaf_sizes(plan) == Counts(56, 1));
  CHECK(slab_sequences(plan) == Counts{16, 16, 16, 8});
}
