// Kernels that reduce over a row: normalisation, cross-entropy.
#pragma once
#include "ops/cpu/isa/tile.hpp"

namespace t3d::cpu::T3D_ISA {
namespace {

template <class T>
void norm_stats(const T* x, index_t n, bool layer, float* stats) {
  float sum = 0, m2 = 0;
  if (layer)
    for (index_t i = 0; i < n; ++i) sum += widen(x[i]);
  const float mean = n > 0 ? sum / static_cast<float>(n) : 0.0F;
  for (index_t i = 0; i < n; ++i) {
    const float d = widen(x[i]) - mean;
    m2 += d * d;
  }
  stats[0] = static_cast<float>(n), stats[1] = mean, stats[2] = m2;
}

template <class T>
void norm_apply(const T* __restrict x, float mean, float rstd, const float* __restrict gamma,
                const float* __restrict beta, T* __restrict y, index_t n) {
  if (beta == nullptr) {
    for (index_t i = 0; i < n; ++i) narrow((widen(x[i]) - mean) * rstd * gamma[i], y[i]);
    return;
  }
  for (index_t i = 0; i < n; ++i) narrow((widen(x[i]) - mean) * rstd * gamma[i] + beta[i], y[i]);
}

template <class T>
void norm_backward_stats(const T* dy, const T* x, float mean, float rstd, const float* gamma,
                         index_t n, float* sums) {
  // Long rows in pieces: one sum of all would lose digits where vectors are short.
  constexpr index_t kPiece = 4096;
  sums[0] = 0, sums[1] = 0;
  for (index_t first = 0; first < n; first += kPiece) {
    const index_t end = first + kPiece < n ? first + kPiece
                                           : n;  // no std function here: unit of an instruction set
    float plain = 0, weighted = 0;
    for (index_t i = first; i < end; ++i) {
      const float grad = widen(dy[i]) * gamma[i];
      plain += grad;
      weighted += grad * ((widen(x[i]) - mean) * rstd);
    }
    sums[0] += plain, sums[1] += weighted;
  }
}

template <bool Accumulate, class T>
void norm_backward_row(const T* __restrict dy, const T* __restrict x, const NormRow& row,
                       const float* __restrict gamma, index_t n, T* __restrict dx,
                       float* __restrict dgamma, float* __restrict dbeta) {
  const float mean = row.mean, rstd = row.rstd, centre = row.centre, slope = row.slope;
  for (index_t i = 0; i < n; ++i) {
    const float grad = widen(dy[i]);
    const float xhat = (widen(x[i]) - mean) * rstd;
    float value = rstd * (grad * gamma[i] - centre - xhat * slope);
    if constexpr (Accumulate) value += widen(dx[i]);
    narrow(value, dx[i]);
    dgamma[i] += grad * xhat;
    dbeta[i] += grad;
  }
}

template <class T>
void norm_backward_apply(const T* dy, const T* x, const NormRow& row, const float* gamma, index_t n,
                         bool accumulate, T* dx, float* dgamma, float* dbeta) {
  if (accumulate)
    norm_backward_row<true>(dy, x, row, gamma, n, dx, dgamma, dbeta);
  else
    norm_backward_row<false>(dy, x, row, gamma, n, dx, dgamma, dbeta);
}

template <class T>
void xent_stats(const T* x, index_t n, float* stats) {
  const float max = largest(x, n, widen(x[0]));
  float total = 0;
  for (index_t i = 0; i < n; ++i) total += exp_clamped(widen(x[i]) - max);
  stats[0] = max, stats[1] = total;
}

template <class T>
void xent_grad(T* __restrict x, index_t n, float lse, float scale) {
  for (index_t i = 0; i < n; ++i) narrow(exp_clamped(widen(x[i]) - lse) * scale, x[i]);
}

}  // namespace
}  // namespace t3d::cpu::T3D_ISA
