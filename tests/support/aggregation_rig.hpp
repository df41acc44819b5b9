// Aggregation against a dense fp64 oracle: gradients by formula on any mesh, and the same tree
// walked with whole vectors. Gradients are zero, parallel, orthogonal, opposite, tiny, huge or not
// finite.
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "hetero/cost/update_traffic.hpp"
#include "support/catch.hpp"
#include "support/model_rig.hpp"
#include "train/aggregate/aggregate.hpp"
#include "train/device_numbers.hpp"

namespace t3d::test {

using Vector = std::vector<double>;

struct Case {
  Grid grid;
  Leaves leaves;
  AggregateConfig options;
  std::optional<double> gain_exponent = {};
  std::vector<index_t> broken = {};  // leaves with a NaN
  std::vector<Cuboid> cuboids = {};  // by replica; empty = all as the grid
  std::function<Config()> model = tiny_gpt;
  [[nodiscard]] MeshShape shape() const {
    return cuboids.empty() ? grid.shape(leaves.replicas) : MeshShape(cuboids);
  }
  [[nodiscard]] Config config() const {
    Config config = model();
    config.model.layers = 1;
    config.aggregate = options;
    config.aggregate.leaves = leaves.per_replica;
    if (cuboids.empty())
      set_grid(config, grid, leaves.replicas);
    else
      set_cuboids(config, cuboids);
    return config;
  }
};

inline Case adasum_case(const Grid& grid, index_t replicas, index_t per_replica = 1,
                        AggregateAlgorithm algorithm = AggregateAlgorithm::gram) {
  Case c{grid, {replicas, per_replica, {}}, {}};
  c.options.method = AggregateMethod::adasum;
  c.options.algorithm = algorithm;
  c.leaves.weights.assign(static_cast<std::size_t>(c.leaves.count()), 1.0);
  return c;
}

/// Uneven ones, a 0 among them where there are at least three.
inline void make_uneven(Case& c) {
  for (std::size_t i = 0; i < c.leaves.weights.size(); ++i)
    c.leaves.weights[i] = 0.25 * static_cast<double>(1 + (i * 7) % 5);
  if (c.leaves.weights.size() > 2) c.leaves.weights[1] = 0;
}

/// Vectors by tensor: what a tensor's name adds up to decides how its gradients lie to each other.
inline double gradient(index_t leaf, const std::string& name, index_t at) {
  const auto normal = [&](index_t stream) {
    return static_cast<double>(
        random_normal({static_cast<std::uint64_t>(stream), stream_of(name)}, at));
  };
  const double common = normal(1000), own = normal(leaf), side = leaf % 2 == 0 ? 1 : -1;
  switch (std::accumulate(name.begin(), name.end(), 0) % 8) {
    case 0: return 0;
    case 1: return common * static_cast<double>(1 + leaf);
    case 2: return at % 16 == leaf % 16 && leaf < 16 ? own : 0;
    case 3: return common * side * (leaf % 4 < 2 ? 1 : 3);
    case 4: return (common + own) * 1e-30;
    case 5: return (common + own) * 1e30;
    case 6: return leaf % 3 == 0 ? 0 : common - own;
    default: return common + 2 * own;
  }
}

inline double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

struct Node {
  Vector vector;
  double weight = 0;
};

inline Node pair_of(const Node& a, const Node& b) {
  const double ab = dot(a.vector, b.vector), aa = dot(a.vector, a.vector),
               bb = dot(b.vector, b.vector), total = a.weight + b.weight;
  const double of_a = aa > 0 && bb > 0 ? 1 - a.weight / total * ab / aa : 1;
  const double of_b = aa > 0 && bb > 0 ? 1 - b.weight / total * ab / bb : 1;
  Node node{Vector(a.vector.size()), total};
  for (std::size_t i = 0; i < node.vector.size(); ++i)
    node.vector[i] = of_a * a.vector[i] + of_b * b.vector[i];
  // What opposite vectors leave of each other is rounding.
  if (dot(node.vector, node.vector) < 0x1p-40 * (of_a * of_a * aa + of_b * of_b * bb))
    node.vector.assign(node.vector.size(), 0.0);
  return node;
}

inline Node tree_of(const std::vector<Node>& nodes) {
  if (nodes.size() == 1) return nodes.front();
  std::size_t left = 1;
  while (left * 2 < nodes.size()) left *= 2;
  const auto middle = nodes.begin() + static_cast<std::ptrdiff_t>(left);
  return pair_of(tree_of({nodes.begin(), middle}), tree_of({middle, nodes.end()}));
}

/// The leaves of one tensor, those without a part left out. `linear`: times their weight.
inline std::vector<Node> nodes_of(const Case& c, const std::string& name, std::size_t size,
                                  bool linear) {
  std::vector<Node> nodes;
  for (index_t leaf = 0; leaf < c.leaves.count(); ++leaf) {
    const double weight = c.leaves.weights[static_cast<std::size_t>(leaf)];
    const bool left_out = weight == 0 || std::count(c.broken.begin(), c.broken.end(), leaf) > 0;
    if (left_out) continue;
    Node node{Vector(size), weight};
    for (std::size_t at = 0; at < size; ++at)
      node.vector[at] = (linear ? weight : 1) *
                        static_cast<float>(gradient(leaf, name, static_cast<index_t>(at)));
    nodes.push_back(std::move(node));
  }
  return nodes;
}

struct Outcome {
  std::map<std::string, Vector> values;
  std::vector<double> summary;
  bool replicas_agree = true;
};

class Rig {
 public:
  Rig(Communicator& world, const Case& c)
      : case_(c),
        plan_(plan_of(c.config(), world.size())),
        rank_(world, plan_.mesh(), DType::f32, false),
        model_(rank_.context, ModelShape(plan_.model, plan_.replica(rank_.mesh.coord().d)), false),
        groups_(model_.buckets(), c.options.per),
        aggregation_(make_aggregation(
            {rank_.context, plan_, model_.buckets(), groups_, c.leaves, c.gain_exponent})) {
    rank_.mesh.world().ledger().clear();
  }

  void run() {
    const index_t first = rank_.mesh.coord().d * case_.leaves.per_replica;
    for (index_t leaf = 0; leaf < case_.leaves.per_replica; ++leaf) {
      fill(first + leaf);
      const bool last = leaf + 1 == case_.leaves.per_replica;
      for (std::size_t b = model_.buckets().size(); b-- > 0;)
        if (last)
          aggregation_->start(b, model_.buckets()[b]->gradient_shard());
        else
          aggregation_->keep(leaf, b, model_.buckets()[b]->gradient_shard());
    }
    aggregation_->finish(1);
  }
  /// The plan's optimizer, AdamW, sends nothing.
  void check_bytes() {
    TrafficTable predicted;
    add_update(RankView(plan_, rank_.mesh.coord()), predicted);
    CHECK(difference(rank_.mesh.world().ledger(), predicted.ledger()).empty());
  }
  [[nodiscard]] Transformer& model() { return model_; }
  [[nodiscard]] Aggregation& aggregation() { return *aggregation_; }
  [[nodiscard]] const Mesh& mesh() const { return rank_.mesh; }
  [[nodiscard]] const ParamGroups& groups() const { return groups_; }

 private:
  void fill(index_t leaf) {
    const bool broken = std::count(case_.broken.begin(), case_.broken.end(), leaf) > 0;
    const Ledger kept = rank_.mesh.world().ledger();
    for (ParamBucket* bucket : model_.buckets()) bucket->drop_gradients();
    model_.train_nothing();
    model_.finish_gradients();
    rank_.mesh.world().ledger() = kept;
    for_each_element(model_, true,
                     [&](const ParamEntry& entry, index_t index, TensorView shard, index_t at) {
                       set(shard, 0, at, gradient(leaf, entry.name, index));
                       if (broken && index == 5 && entry.name == "wte.weight")
                         set(shard, 0, at, std::numeric_limits<double>::quiet_NaN());
                     });
  }

  const Case& case_;
  Plan plan_;
  RankContext rank_;
  Transformer model_;
  ParamGroups groups_;
  std::unique_ptr<Aggregation> aggregation_;
};

inline Outcome aggregate(const Case& c) {
  std::vector<GlobalTensors> by_replica(static_cast<std::size_t>(c.leaves.replicas));
  Outcome outcome;
  run_local_ranks(static_cast<int>(c.shape().ranks()), [&](Communicator& world) {
    Rig rig(world, c);
    rig.run();
    rig.check_bytes();
    collect(rig.model(), true, by_replica[static_cast<std::size_t>(rig.mesh().coord().d)]);
    const ConstTensorView summary = rig.aggregation().summary();
    if (world.rank() == 0)
      for (index_t at = 0; at < summary.cols; ++at) outcome.summary.push_back(get(summary, 0, at));
  });
  outcome.values = by_replica.front().values;
  for (const GlobalTensors& other : by_replica)
    outcome.replicas_agree = outcome.replicas_agree && other.values == outcome.values;
  return outcome;
}

/// Largest |got - expected| over the norm of the largest vector that went in.
inline double distance(const Vector& got, const Vector& expected, const std::vector<Node>& nodes) {
  double largest = 0, squares = 0;
  for (const Node& node : nodes) largest = std::max(largest, dot(node.vector, node.vector));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double d = got[i] - expected[i];
    squares += d * d;
  }
  return largest > 0 ? std::sqrt(squares / largest) : std::sqrt(squares);
}

inline void check_adasum(const Case& c, double tolerance = 1e-6) {
  INFO(c.shape().describe() << ", leaves " << c.leaves.per_replica << ", " << c.options.algorithm);
  const Outcome outcome = aggregate(c);
  CHECK(outcome.replicas_agree);
  for (const auto& [name, values] : outcome.values) {
    INFO(name);
    const auto nodes = nodes_of(c, name, values.size(), true);
    const Vector expected = tree_of(nodes).vector;
    CHECK(distance(values, expected, nodes) <= tolerance);
  }
}

/// c.options.method is mean or sum.
inline void check_weighted_sum(const Case& c) {
  INFO(c.shape().describe() << ", " << c.options.method);
  const Outcome outcome = aggregate(c);
  CHECK(outcome.replicas_agree);
  for (const auto& [name, values] : outcome.values) {
    INFO(name);
    const auto nodes = nodes_of(c, name, values.size(), true);
    Vector expected(values.size());
    for (const Node& node : nodes)
      for (std::size_t i = 0; i < expected.size(); ++i)
        expected[i] +=
            node.vector[i] / (c.options.method == AggregateMethod::mean ? c.leaves.total() : 1);
    CHECK(distance(values, expected, nodes) <= 1e-6);
  }
}

}  // namespace t3d::test
