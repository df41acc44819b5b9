// Aggregation across replicas against a dense fp64 oracle: every algorithm, cuboids even and
// uneven, any number of replicas and leaves, uneven weights, and gradients that are zero, parallel,
// orthogonal, opposite, tiny, huge or not finite.
#include "support/aggregation_rig.hpp"

using namespace t3d;
using namespace t3d::test;

TEST_CASE("adasum by gram equals the oracle on every cuboid") {
  for (const Grid& grid : all_grids()) {
    Case c = adasum_case(grid, 2);
    check_adasum(c);
    c = adasum_case(grid, 1, 3);
    c.options.leaf = LeafRule::linear;
    make_uneven(c);
    check_adasum(c);
  }
}

TEST_CASE("adasum of 1 to 64 gradients, dealt to replicas and leaves") {
  for (const auto& [replicas, per_replica] : {std::pair<index_t, index_t>{1, 1},
                                              {1, 2},
                                              {3, 1},
                                              {5, 1},
                                              {8, 1},
                                              {2, 6},
                                              {7, 1},
                                              {3, 3},
                                              {4, 4},
                                              {12, 1},
                                              {1, 17},
                                              {4, 8},
                                              {8, 8}}) {
    Case c = adasum_case({}, replicas, per_replica);
    check_adasum(c);
    c.options.leaf = LeafRule::linear;
    make_uneven(c);
    check_adasum(c);
  }
}

TEST_CASE("a gradient that is not finite is left out of the whole step") {
  Case c = adasum_case({1, 2, 1, {}, {}, {}}, 4);
  c.broken = {2};
  check_adasum(c);
  c = adasum_case({}, 5);
  c.broken = {0, 4};
  check_adasum(c);
  c = adasum_case({}, 3);
  c.broken = {1};
  const Outcome outcome = aggregate(c);
  CHECK(outcome.summary[adasum_summary::weights] == 2);
  CHECK(std::vector<double>(outcome.summary.begin() + adasum_summary::columns,
                            outcome.summary.end()) == std::vector<double>{1, 0, 1});
}

TEST_CASE("a replica without samples changes nothing but the count") {
  Case with = adasum_case({}, 3);
  with.options.leaf = LeafRule::linear;
  with.leaves.weights = {1, 0, 2};
  check_adasum(with);
}

TEST_CASE("adasum on a 16-bit wire rounds each number twice at most") {
  Case c = adasum_case({1, 1, 2, {}, {}, {}}, 4);
  c.options.wire = WireType::bf16;
  check_adasum(c, 2 * 0x1p-8);
}

TEST_CASE("mean and sum of replicas with weights") {
  for (const AggregateMethod method : {AggregateMethod::mean, AggregateMethod::sum}) {
    Case c = adasum_case({1, 2, 1, {}, {}, {}}, 3);
    c.options.method = method;
    make_uneven(c);
    check_weighted_sum(c);
  }
}

// Placement gain: the shards are the weighted mean, and mean x gain has the projection of adasum.
TEST_CASE("gains and the norm of the mean gradient") {
  Case c = adasum_case({1, 1, 2, {}, {}, {2, 1}}, 2, 3);
  c.gain_exponent = 1;
  GlobalTensors means;
  std::map<std::string, double> gains;
  double squares = 0;
  run_local_ranks(4, [&](Communicator& world) {
    Rig rig(world, c);
    rig.run();
    if (rig.mesh().coord().d == 0) collect(rig.model(), true, means);
    if (world.rank() != 0) return;
    for (index_t group = 0; group < rig.groups().count(); ++group)
      gains[rig.groups().name(group)] = get(rig.aggregation().gains(), 0, group);
    squares = get(rig.aggregation().summary(), 0, adasum_summary::mean_squares);
  });
  double expected_squares = 0;
  for (const auto& [name, values] : means.values) {
    INFO(name);
    const auto nodes = nodes_of(c, name, values.size(), false);
    Vector mean(values.size());
    for (const Node& node : nodes)
      for (std::size_t i = 0; i < mean.size(); ++i)
        mean[i] += node.vector[i] / static_cast<double>(nodes.size());
    CHECK(distance(values, mean, nodes) <= 1e-6);
    const double square = dot(mean, mean);
    expected_squares += square;
    if (square == 0) continue;
    const double gain = dot(tree_of(nodes).vector, mean) / square;
    CHECK(gains[name] == Approx(std::clamp(gain, 1.0, 6.0)).epsilon(1e-6));
  }
  CHECK(squares == Approx(expected_squares).epsilon(1e-6));
}

TEST_CASE("flat: the mean's direction, the average law's length") {
  Case c = adasum_case({1, 2, 1, {}, {}, {}}, 4, 1, AggregateAlgorithm::flat);
  const Outcome outcome = aggregate(c);
  CHECK(outcome.replicas_agree);
  for (const auto& [name, values] : outcome.values) {
    INFO(name);
    const auto nodes = nodes_of(c, name, values.size(), false);
    Vector mean(values.size());
    double own = 0;
    for (const Node& node : nodes) {
      own += dot(node.vector, node.vector);
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += node.vector[i] / 4;
    }
    const double square = dot(mean, mean), noise = (own - 4 * square) / 3,
                 signal = square - noise / 4;
    const double ratio = signal > 0 ? std::clamp(noise / signal, 0.0, 1000.0) : 1000.0;
    const double gain = 4 * (1 + 2 * ratio) / (4 + 2 * ratio);
    for (double& value : mean) value *= gain;
    CHECK(distance(values, mean, nodes) <= 2e-6);
  }
}

TEST_CASE("groups are tensors, blocks or the model, wherever the elements lie") {
  for (const GroupBy per : {GroupBy::tensor, GroupBy::block, GroupBy::model}) {
    std::map<std::string, Vector> one;
    for (const Grid& grid : {Grid{}, Grid{2, 3, 1, {1, 3}, {2, 0, 1}, {1}}}) {
      Case c = adasum_case(grid, 3);
      c.options.per = per;
      const Outcome outcome = aggregate(c);
      if (one.empty()) one = outcome.values;
      for (const auto& [name, values] : outcome.values)
        CHECK(distance(values, one[name], nodes_of(c, name, values.size(), true)) <= 2e-6);
    }
  }
}
