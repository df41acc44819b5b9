// A small cluster whose links get slower outward, and plans on it: for tests of hetero/forecast.
#pragma once
#include <algorithm>
#include <tuple>
#include <vector>

#include "forecast/axis_order.hpp"
#include "forecast/candidate.hpp"
#include "support/plan_rig.hpp"

namespace t3d::test {

/// `nodes` of 4 ranks; two under a switch; links get slower outward.
inline Cluster small_cluster(index_t nodes, double memory_mib = 0) {
  Cluster cluster;
  NodeClass one;
  one.name = "c1";
  one.nodes = nodes;
  one.ranks_per_node = 4;
  one.memory_bytes = static_cast<index_t>(memory_mib * 1048576);
  one.launch_seconds = 1e-7;
  for (std::size_t kind = 0; kind < kOperatorKinds; ++kind) {
    OperatorTable table;
    table.kind = static_cast<OperatorKind>(kind);
    table.fit.terms.assign(form_of(table.kind).terms.size(), 0);
    table.fit.terms[0] = 1e-6;
    table.fit.terms[1] = form_of(table.kind).computes ? 1e-11 : 1e-10;
    one.operators.push_back(table);
  }
  cluster.classes.push_back(one);
  for (const auto& [name, count, beta] : {std::tuple{"node", index_t{1}, 1e-10},
                                          {"leaf", index_t{2}, 1e-9},
                                          {"core", index_t{0}, 4e-9}}) {
    Level level;
    level.name = name;
    level.nodes = count;
    level.alpha_seconds = 1e-6;
    level.beta_seconds_per_byte = beta;
    cluster.levels.push_back(level);
  }
  return cluster;
}

inline SearchRequest request_of(const Config& config) {
  SearchRequest request;
  Config filled = config;
  fill_computed_defaults(filled, "test.toml");
  request.recipe = plan_recipe(filled, {1, TransportKind::host, false});
  return request;
}

inline Plan even_plan(const SearchRequest& request, const JobCandidate& candidate, index_t ranks) {
  PlanRecipe recipe = request.recipe;
  recipe.base.ranks = static_cast<int>(ranks);
  recipe.micro = candidate.micro;
  recipe.base.recompute = candidate.recompute;
  PlanShape shape;
  for (const index_t sequences :
       Partition::even("shares", recipe.sequences, candidate.replicas).sizes()) {
    ReplicaShape replica;
    replica.cuboid = candidate.cuboid;
    replica.sequences = sequences;
    shape.replicas.push_back(replica);
  }
  return build_plan(recipe, shape);
}

inline void set_term(Cluster& cluster, OperatorKind kind, std::size_t term, double seconds) {
  for (OperatorTable& table : cluster.classes.front().operators)
    if (table.kind == kind) table.fit.terms[term] = seconds;
}

/// Of the axes with more than one member, the usual one first.
inline std::vector<AxisOrder> all_orders(const AxisExtents& extents) {
  const AxisOrder usual = usual_order(extents);
  std::vector<AxisOrder> orders{usual};
  AxisOrder turned = usual;
  std::sort(turned.begin(), turned.end());
  do
    if (turned != usual) orders.push_back(turned);
  while (std::next_permutation(turned.begin(), turned.end()));
  return orders;
}

inline AxisExtents extents_of(const JobCandidate& candidate) {
  return axis_extents(candidate.replicas, candidate.cuboid);
}

}  // namespace t3d::test
