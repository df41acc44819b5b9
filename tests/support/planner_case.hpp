// Small models and stated speeds for tests of the planner.
#pragma once
#include <vector>

#include "hetero/planner/build_plan.hpp"
#include "hetero/speed/speeds.hpp"

namespace t3d::test {

inline PlanRecipe small_recipe(int ranks, index_t sequences) {
  PlanRecipe recipe;
  ModelConfig& m = recipe.base.model;
  m.layers = 4;
  m.hidden = 512;
  m.heads = m.kv_heads = 8;
  m.ffn = 2048;
  m.vocab = 4096;
  m.context = 64;
  recipe.base.ranks = ranks;
  recipe.base.aggregate.placement = AggregatePlacement::pre;
  recipe.base.aggregate.algorithm = AggregateAlgorithm::gram;
  recipe.base.aggregate.reference_batch = 1;
  recipe.sequences = sequences;
  return recipe;
}

/// A rank that computes `factor` times as fast as the usual one, in every class.
inline RankSpeed rank_speed(double factor, std::string node = "") {
  RankSpeed rank;
  rank.node = std::move(node);
  rank.device = "cpu";
  constexpr double kFlops = 4e10, kBytes = 1e10;
  if (factor <= 0) return rank;
  for (TimeCurve& curve : rank.curves) curve = TimeCurve::of_rate(kFlops * factor);
  rank.curve(WorkClass::streamed) = TimeCurve::of_rate(kBytes * factor);
  return rank;
}

/// Messages cost nothing.
inline Speeds speeds_of(const std::vector<double>& factors) {
  Speeds speeds;
  for (const double factor : factors) speeds.ranks.push_back(rank_speed(factor));
  return speeds;
}

/// `replicas` even ones; the first ranks have places.
inline PlanShape even_shape(const PlanRecipe& recipe, index_t replicas, const Cuboid& cuboid) {
  PlanShape shape;
  for (const index_t n : Partition::even("shares", recipe.sequences, replicas).sizes()) {
    ReplicaShape replica;
    replica.cuboid = cuboid;
    replica.sequences = n;
    shape.replicas.push_back(replica);
  }
  return shape;
}

}  // namespace t3d::test
