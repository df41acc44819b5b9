// The gain of one group's weighted mean from sums of squares (FlatGainArgs), on numbers only; for
// hosts and GPUs like ops/adasum_tree.hpp.
#pragma once
#include "ops/adasum_tree.hpp"

namespace t3d::adasum {

/// Samples in units of the reference batch, over all leaves.
struct LeafWeights {
  double total = 0;
  int count = 0;  // of those above 0
};
[[nodiscard]] constexpr LeafWeights leaf_weights(const double* weight, index_t n) {
  LeafWeights sums;
  for (index_t i = 0; i < n; ++i) {
    sums.total += weight[i];
    sums.count += weight[i] > 0 ? 1 : 0;
  }
  return sums;
}

/// leaf_square = sum of w_i |g_i|^2, mean_square = |weighted mean|^2. Both expectations hold the
/// signal G^2: E leaf_square = W G^2 + n noise, E mean_square = G^2 + noise / W.
[[nodiscard]] constexpr NoiseEstimate estimate_from_squares(double leaf_square, double mean_square,
                                                            const LeafWeights& weights) {
  const double noise = (leaf_square - weights.total * mean_square) / (weights.count - 1);
  return {mean_square - noise / weights.total, noise};
}

[[nodiscard]] constexpr double flat_gain(const NoiseEstimate& estimate,
                                         const LeafWeights& weights) {
  return expected_gain(weights.total, noise_ratio(estimate));
}

}  // namespace t3d::adasum
