#include "hetero/cost/keep_cost.hpp"

#include <algorithm>

#include "hetero/cost/layer_traffic.hpp"

namespace t3d {
namespace {

KeepCost keep_cost_with(const Plan& plan, const Coord& coord, index_t sequences) {
  const RankView rank(plan, coord);
  const ModelConfig& m = plan.model;
  const index_t size = size_of(rank.activation);
  KeepCost cost;
  if (rank.p > 1 || rank.activation != rank.accumulator)
    cost.weights_bytes = (m.layers * rank.hidden * (2 * rank.heads + rank.kv + rank.up + rank.ffn) +
                          (m.tied_embeddings ? 1 : 2) * rank.vocab * rank.hidden) *
                         size;
  const index_t rows = Rows(rank, sequences).slab;
  const index_t blocks = plan.recompute == Recompute::block ? 1 : m.layers;
  if (rank.q > 1) cost.inputs_bytes += blocks * rows * 2 * rank.hidden * size;
  if (rank.r > 1) cost.inputs_bytes += blocks * rows * (rank.heads + rank.ffn) * size;
  return cost;
}

/// Costs grow with the rows of a slab and depend on nothing else of it.
index_t largest_slab(const ReplicaPlan& replica, index_t sequences) {
  const std::vector<index_t> sizes = replica.tokens_of(sequences).sizes();
  return std::max_element(sizes.begin(), sizes.end()) - sizes.begin();
}

}  // namespace

KeepCost keep_cost(const Plan& plan, const Coord& coord) {
  return keep_cost_with(plan, coord, plan.largest_micro());
}

KeepCost largest_keep_cost(const Plan& plan) {
  const index_t sequences = plan.largest_micro();
  KeepCost largest;
  for (index_t d = 0; d < std::ssize(plan.replicas); ++d) {
    if (d > 0 && plan.replica(d) == plan.replica(d - 1)) continue;
    const auto& [p, q, r] = plan.replica(d).cuboid;
    const index_t i = largest_slab(plan.replica(d), sequences);
    for (index_t j = 0; j < q; ++j)
      for (index_t k = 0; k < r; ++k) {
        const KeepCost cost = keep_cost_with(plan, {d, i, j, k}, sequences);
        largest.weights_bytes = std::max(largest.weights_bytes, cost.weights_bytes);
        largest.inputs_bytes = std::max(largest.inputs_bytes, cost.inputs_bytes);
      }
  }
  return largest;
}

}  // namespace t3d
