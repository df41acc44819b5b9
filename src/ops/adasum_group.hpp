// One group's step of the aggregation verb on numbers only: noise estimate, leaves, tree, gain and
// coefficients from one Gram matrix. Plain constexpr code over memory that the caller brings: the
// host runs it in a loop over groups, a GPU in one thread per group, with the same bits
// (ops/adasum_tree.hpp says which flags that takes).
#pragma once
#include "ops/adasum_tree.hpp"

namespace t3d::adasum {

inline constexpr index_t kMostVectors = 64;

/// Whether vector i of n is finite in all groups. gram [groups, packed_size(n)], leading dimension
/// ld.
[[nodiscard]] constexpr bool finite_everywhere(const double* gram, index_t groups, index_t ld,
                                               index_t n, index_t i) {
  for (index_t g = 0; g < groups; ++g) {
    const double own = gram[g * ld + packed_at(i, i, n)];
    if (!(own - own == 0)) return false;
  }
  return true;
}

/// What all groups of a step have in common.
struct GroupStep {
  index_t n = 0;
  const double* weight = nullptr;  // [n]
  const int* live = nullptr;       // vectors that take part, ascending
  int count = 0;                   // of them
  double total = 0;                // their weight
  double unscale = 1;
  /// 0: coefficients of Adasum. Else those of a weighted sum, w_i / divisor.
  double divisor = 0;
  bool noise_leaf = true, plain_leaf = false;
  double noise_decay = 0.9;
};

/// Sum of the live weights in their order.
[[nodiscard]] constexpr double total_weight(const double* weight, const int* live, int count) {
  double total = 0;
  for (int x = 0; x < count; ++x) total += weight[live[x]];
  return total;
}

struct GroupResult {
  double gain = 1;         // S = <adasum, mean> / |mean|^2, within its limits
  double mean_square = 0;  // |mean|^2, unscaled
};

/// noise [2] = (signal, noise), or null: exponential means, updated where two vectors are live.
constexpr void update_noise(const GroupStep& step, const double* gram, double* noise) {
  if (noise == nullptr || step.count < 2) return;
  const NoiseEstimate now = estimate_noise(gram, step.n, step.weight, step.live, step.count);
  const double square = step.unscale * step.unscale, fresh = 1 - step.noise_decay;
  noise[0] = step.noise_decay * noise[0] + fresh * (square * now.signal);
  noise[1] = step.noise_decay * noise[1] + fresh * (square * now.noise);
}

/// Factor with which a vector of this weight enters the tree.
[[nodiscard]] constexpr double leaf(const GroupStep& step, const double* noise, double weight) {
  if (step.plain_leaf) return 1;
  const bool known = noise != nullptr && (noise[0] != 0 || noise[1] != 0);
  if (!step.noise_leaf || !known) return weight;
  return expected_gain(weight, noise_ratio({noise[0], noise[1]}));
}

/// `value` within the gain's limits; the lower one for a NaN.
[[nodiscard]] constexpr double limit_gain(double value, double total) {
  const double low = total < 1 ? total : 1, high = total < 1 ? 1 : total;
  return value >= high ? high : value >= low ? value : low;
}

/// Gain and square of the weighted mean from Adasum's coefficients; `mean` [n] is scratch.
[[nodiscard]] constexpr GroupResult measure_gain(const GroupStep& step, const double* gram,
                                                 const double* coefficient, double* mean) {
  for (int x = 0; x < step.count; ++x) mean[step.live[x]] = step.weight[step.live[x]] / step.total;
  const int n = step.count;
  const double square = form(gram, step.n, mean, mean, step.live, 0, n, 0, n);
  if (!(square > 0)) return {};
  const double along = form(gram, step.n, coefficient, mean, step.live, 0, n, 0, n);
  return {limit_gain(along / square, step.total), square * step.unscale * step.unscale};
}

/// The whole step of a group. gram: its packed triangle. noise [2]: in and out, or null.
/// coefficient [n]: out. scratch: n numbers.
constexpr GroupResult aggregate_group(const GroupStep& step, const double* gram, double* noise,
                                      double* coefficient, double* scratch) {
  update_noise(step, gram, noise);
  for (index_t i = 0; i < step.n; ++i) coefficient[i] = 0;
  for (int x = 0; x < step.count; ++x)
    coefficient[step.live[x]] = leaf(step, noise, step.weight[step.live[x]]);
  tree(gram, step.n, step.weight, step.live, step.count, coefficient, scratch);
  const GroupResult result = measure_gain(step, gram, coefficient, scratch);
  for (int x = 0; x < step.count && step.divisor != 0; ++x)
    coefficient[step.live[x]] = step.weight[step.live[x]] / step.divisor;
  return result;
}

}  // namespace t3d::adasum
