// Weighted Adasum on numbers only. Whatever Adasum makes of n vectors g_i is sum_i c_i g_i, and the
// c_i depend on nothing but the Gram matrix K_ij = <g_i, g_j> and the weights: so this file is the
// whole operator, and vectors are met only where K is formed and where the sum is taken.
//
// Pairwise (Maleki et al. 2021, with weights; docs/decisions/008-adasum.md has the derivation):
//   A(a, b) = (1 - q_a <a,b>/|a|^2) a + (1 - q_b <a,b>/|b|^2) b,   q_a = W_a / (W_a + W_b)
// parallel vectors: the weighted mean; orthogonal ones: the sum; equal weights: the classical
// operator. n vectors: a binary tree over those that take part, in their order, cut at the largest
// power of two below the count, so that the tree depends on nothing but who takes part.
//
// The same bits on every host and GPU: sources that use this are compiled without contraction of
// products and sums (-ffp-contract=off, nvcc -fmad=false).
#pragma once
#include "core/types.hpp"

namespace t3d::adasum {

/// Numbers in the packed upper triangle of a symmetric n x n matrix.
[[nodiscard]] constexpr index_t packed_size(index_t n) { return n * (n + 1) / 2; }
/// Place of (i, j) in it, in either order.
[[nodiscard]] constexpr index_t packed_at(index_t i, index_t j, index_t n) {
  return i <= j ? i * n - i * (i - 1) / 2 + j - i : packed_at(j, i, n);
}

/// sum over i in [0, n) and j in [0, n) of x_i y_j K_ij, for i in live[a0, a1), j in live[b0, b1).
[[nodiscard]] constexpr double form(const double* gram, index_t n, const double* x, const double* y,
                                    const int* live, int a0, int a1, int b0, int b1) {
  double sum = 0;
  for (int a = a0; a < a1; ++a) {
    double row = 0;
    for (int b = b0; b < b1; ++b) row += gram[packed_at(live[a], live[b], n)] * y[live[b]];
    sum += x[live[a]] * row;
  }
  return sum;
}

/// Factors of the two vectors of one pair from <a,b>, |a|^2, |b|^2 and the weights.
struct PairFactors {
  double a = 1, b = 1;
};
[[nodiscard]] constexpr PairFactors pair_factors(double ab, double aa, double bb, double weight_a,
                                                 double weight_b) {
  // A vector that is nothing beside the other has no direction of its own worth removing.
  constexpr double kNothing = 0x1p-80;
  if (!(aa > kNothing * bb) || !(bb > kNothing * aa)) return {};
  const double total = weight_a + weight_b;
  const PairFactors factors{1 - weight_a / total * (ab / aa), 1 - weight_b / total * (ab / bb)};
  // Opposite vectors may leave nothing. What rounding leaves instead is made zero, lest the next
  // pair takes its direction for one.
  constexpr double kRounding = 0x1p-40;
  const double parts = factors.a * factors.a * aa + factors.b * factors.b * bb;
  if (parts + 2 * factors.a * factors.b * ab < kRounding * parts) return {0, 0};
  return factors;
}

/// In: coefficient[live[x]] = the factor with which that vector enters (its leaf). Out: that of the
/// whole. `weight` by vector; sums[x], x < count, is room for the weights of subtrees. All live
/// weights > 0 and all live entries of K finite.
constexpr void tree(const double* gram, index_t n, const double* weight, const int* live, int count,
                    double* coefficient, double* sums) {
  for (int x = 0; x < count; ++x) sums[x] = weight[live[x]];
  for (int half = 1; half < count; half *= 2)
    for (int first = 0; first + half < count; first += 2 * half) {
      const int middle = first + half, last = middle + half < count ? middle + half : count;
      const double* c = coefficient;
      const PairFactors factors = pair_factors(
          form(gram, n, c, c, live, first, middle, middle, last),
          form(gram, n, c, c, live, first, middle, first, middle),
          form(gram, n, c, c, live, middle, last, middle, last), sums[first], sums[middle]);
      for (int x = first; x < last; ++x) coefficient[live[x]] *= x < middle ? factors.a : factors.b;
      sums[first] += sums[middle];
    }
}

/// What the replicas' gradients of one group say of signal and noise, for samples in units of the
/// reference batch: signal = |E g|^2, noise = trace of the covariance of a reference batch's
/// gradient. Unbiased. Needs two live vectors.
struct NoiseEstimate {
  double signal = 0, noise = 0;
};
[[nodiscard]] constexpr NoiseEstimate estimate_noise(const double* gram, index_t n,
                                                     const double* weight, const int* live,
                                                     int count) {
  double between = 0, own = 0;
  for (int a = 0; a < count; ++a)
    for (int b = a + 1; b < count; ++b) between += gram[packed_at(live[a], live[b], n)];
  const double signal = between / (0.5 * count * (count - 1));
  for (int a = 0; a < count; ++a)
    own += weight[live[a]] * (gram[packed_at(live[a], live[a], n)] - signal);
  return {signal, own / count};
}

/// noise / signal within [0, 1000]; 1000 where no signal is seen.
[[nodiscard]] constexpr double noise_ratio(const NoiseEstimate& estimate) {
  constexpr double kMost = 1000;
  if (!(estimate.signal > 0)) return kMost;
  const double ratio = estimate.noise / estimate.signal;
  return ratio < 0 ? 0 : ratio > kMost ? kMost : ratio;
}

/// S(w) = w (1 + 2b) / (w + 2b): how much longer than one reference batch's gradient Adasum makes
/// the mean gradient of w of them, with b their noise over signal. 1 without noise, w with nothing
/// but noise.
[[nodiscard]] constexpr double expected_gain(double weight, double ratio) {
  return weight > 0 ? weight * (1 + 2 * ratio) / (weight + 2 * ratio) : 0;
}

}  // namespace t3d::adasum
