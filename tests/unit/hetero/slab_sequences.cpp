// Another division of the batch under the same cut of the parameters
// (hetero/planner/slab_sequences.hpp): what is asked for comes out, and nothing else changes.
#include "hetero/planner/slab_sequences.hpp"

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "core/random.hpp"
#include "support/catch.hpp"
#include "support/plan_rig.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

using Counts = std::vector<index_t>;

index_t sum_of(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), index_t{0});
}

Config input(index_t sequences, index_t micro = 0) {
  Config config = gpt_input();
  config.batch.sequences = sequences;
  config.batch.micro = micro;
  return config;
}

Config adasum_input(index_t sequences, index_t leaves,
                    AggregatePlacement placement = AggregatePlacement::gain) {
  Config config = input(sequences);
  config.aggregate.method = AggregateMethod::adasum;
  config.aggregate.placement = placement;
  config.aggregate.leaves = leaves;
  return config;
}

/// The sizes of all leaves with samples, in the order of their samples.
Counts leaf_sizes(const Plan& plan) {
  Counts sizes;
  for (const ReplicaPlan& replica : plan.replicas)
    for (std::size_t leaf = 0; leaf < replica.leaves.size(); ++leaf)
      if (replica.sequences_of(leaf) > 0) sizes.push_back(replica.sequences_of(leaf));
  return sizes;
}

const std::vector<Cuboid> kMixed{{2, 1, 1}, {2, 2, 1}, {1, 1, 1}};  // 5 slabs

}  // namespace

TEST_CASE("even leaves are even, in passes that are no longer than asked", "[slab_sequences]") {
  using Leaves = std::vector<Counts>;
  CHECK(even_leaves(7, 1, 0) == Leaves{{7}});
  CHECK(even_leaves(7, 1, 3) == Leaves{{3, 2, 2}});
  CHECK(even_leaves(7, 2, 3) == Leaves{{2, 2}, {3}});
  CHECK(even_leaves(2, 3, 4) == Leaves{{1}, {1}, {}});
  CHECK(even_leaves(0, 2, 4) == Leaves{{}, {}});
}

TEST_CASE("the division that a plan has gives the plan", "[slab_sequences]") {
  for (const index_t micro : {0, 1, 3}) {
    const Plan plan = plan_of_cuboids(input(12, micro), kMixed);
    CHECK(with_slab_sequences(plan, slab_sequences(plan), micro) == plan);
  }
  const Plan leaves = plan_of_cuboids(adasum_input(12, 2), kMixed);
  CHECK(with_slab_sequences(leaves, slab_sequences(leaves), 0) == leaves);
}

TEST_CASE("any division comes out, and only the batch changes", "[slab_sequences]") {
  const Plan plan = plan_of_cuboids(input(12), kMixed);
  REQUIRE(slab_sequences(plan).size() == 5);
  for (const Counts& counts : std::vector<Counts>{
           {3, 2, 2, 2, 3}, {12, 0, 0, 0, 0}, {0, 0, 0, 0, 12}, {0, 6, 1, 0, 5}, {1, 1, 1, 1, 8}}) {
    const Plan changed = with_slab_sequences(plan, counts, 0);
    CHECK(slab_sequences(changed) == counts);
    CHECK(plan.same_parameters(changed));
    CHECK(changed.same_parameters(plan));
    // Back again, as if nothing had been.
    CHECK(with_slab_sequences(changed, slab_sequences(plan), 0) == plan);
  }
}

TEST_CASE("in passes, the sum stays and every slab is near what was asked", "[slab_sequences]") {
  for (index_t seed = 0; seed < 100; ++seed) {
    const auto draw = [&](index_t at, index_t n) {
      return static_cast<index_t>(random_bits({3, 5}, 100 * seed + at) %
                                  static_cast<std::uint32_t>(n));
    };
    const index_t total = 5 + draw(0, 60), micro = draw(1, 9);
    const Plan plan = plan_of_cuboids(input(total, micro), kMixed);
    Counts counts(5, 0);
    for (index_t n = 0; n < total; ++n)
      ++counts[static_cast<std::size_t>(std::min(draw(2 + n, 5), draw(70 + n, 5)))];
    const Plan changed = with_slab_sequences(plan, counts, micro);
    INFO("seed " << seed << ", " << total << " in passes of " << micro);
    const Counts got = slab_sequences(changed);
    CHECK(sum_of(got) == total);
    CHECK(plan.same_parameters(changed));
    CHECK(changed.replica(0).sequences() == counts[0] + counts[1]);
    CHECK(changed.replica(1).sequences() == counts[2] + counts[3]);
    CHECK(changed.replica(2).sequences() == counts[4]);
    for (index_t d = 0; d < 3; ++d) {
      if (changed.replica(d).sequences() == 0) continue;
      if (micro > 0) CHECK(changed.replica(d).largest_micro() <= micro);
      const auto passes = std::ssize(changed.replica(d).leaves[0]);
      const auto first = static_cast<std::size_t>(2 * d);
      CHECK(std::abs(got[first] - counts[first]) <= passes);
    }
  }
}

TEST_CASE("what leaves move by", "[slab_sequences]") {
  CHECK(leaf_unit(plan_of_cuboids(input(12), kMixed)) == 1);
  CHECK(leaf_unit(plan_of_cuboids(adasum_input(12, 1), kMixed)) == 1);
  CHECK(leaf_unit(plan_of_cuboids(adasum_input(12, 2), kMixed)) == 2);
  CHECK(leaf_unit(plan_of_cuboids(adasum_input(13, 2), kMixed)) == 0);
}

// Its optimizer is where a leaf is: it would have to come along.
TEST_CASE("leaves with optimizers of their own do not move", "[slab_sequences]") {
  using enum AggregatePlacement;
  CHECK(leaf_unit(plan_of_cuboids(adasum_input(12, 2, post), kMixed)) == 0);
  CHECK(leaf_unit(plan_of_cuboids(adasum_input(12, 1, post), kMixed)) == 1);
}

TEST_CASE("whole leaves move: all of them keep their samples", "[slab_sequences]") {
  const Plan plan = plan_of_cuboids(adasum_input(12, 2), kMixed);
  const Counts before = leaf_sizes(plan);
  REQUIRE(before == Counts(6, 2));
  // Replicas keep theirs: nothing moves.
  for (const Counts& counts :
       std::vector<Counts>{{4, 0, 0, 4, 4}, {2, 2, 4, 0, 4}, {0, 4, 2, 2, 4}}) {
    const Plan changed = with_slab_sequences(plan, counts, 0);
    CHECK(leaf_sizes(changed) == before);
    CHECK(slab_sequences(changed) == counts);
    CHECK(plan.same_parameters(changed));
  }
  // Passes of one leaf: its sequences are cut in proportion, as well as whole ones can be.
  CHECK(slab_sequences(with_slab_sequences(plan, Counts{1, 3, 2, 2, 4}, 0)) ==
        Counts{0, 4, 2, 2, 4});
  // More leaves in one place are more room everywhere.
  const Plan grown = with_slab_sequences(plan, Counts{5, 3, 1, 1, 2}, 0);
  CHECK(leaf_sizes(grown) == before);
  CHECK(grown.leaves_per_replica() == 4);
  CHECK(grown.replica(0).leaves == std::vector<Counts>(4, Counts{2}));
  CHECK(grown.replica(2).leaves == std::vector<Counts>{{2}, {}, {}, {}});
  CHECK(!plan.same_parameters(grown));
  // And a replica may have none, and all come back.
  const Plan one = with_slab_sequences(grown, Counts{0, 0, 12, 0, 0}, 0);
  CHECK(one.leaves_per_replica() == 6);
  CHECK(leaf_sizes(one) == before);
  CHECK(with_slab_sequences(one, slab_sequences(plan), 0) == plan);
}

TEST_CASE("a division of another batch, or for other slabs, is a mistake", "[slab_sequences]") {
  const Plan plan = plan_of_cuboids(input(12), kMixed);
  CHECK_THROWS_AS(with_slab_sequences(plan, Counts{3, 2, 2, 2, 2}, 0), Error);
  CHECK_THROWS_AS(with_slab_sequences(plan, Counts{6, 6}, 0), Error);
  const Plan leaves = plan_of_cuboids(adasum_input(12, 2), kMixed);
  CHECK_THROWS_AS(with_slab_sequences(leaves, Counts{3, 0, 5, 0, 4}, 0), Error);
}
