// Optimizers, steps along directions and sums of squares. Exact: see ops/cpu/update_kernels.hpp.
#pragma once
#include "ops/cpu/isa/wide.hpp"

namespace t3d::cpu::T3D_ISA {
namespace {

/// Moves m and v by a gradient; the result is what the weight w moves by.
inline float adamw_move(const AdamWStep& step, float g, float w, float& m, float& v) {
  m = step.beta1 * m + (1.0F - step.beta1) * g;
  v = step.beta2 * v + (1.0F - step.beta2) * g * g;
  const float root = __builtin_sqrtf(v) * step.root_scale + step.eps;
  return step.step_size * m / root + step.shrink * w;
}

template <class T>
void adamw(float* __restrict w, float* __restrict m, float* __restrict v, const T* __restrict grad,
           const AdamWStep& step, index_t n) {
  for (index_t i = 0; i < n; ++i)
    w[i] -= adamw_move(step, widen(grad[i]) * step.grad_scale, w[i], m[i], v[i]);
}

template <class T>
void adam_direction(const float* __restrict w, float* __restrict m, float* __restrict v,
                    const T* grad, const AdamWStep& step, float* direction, index_t n) {
  T3D_INDEPENDENT
  for (index_t i = 0; i < n; ++i)
    direction[i] = adamw_move(step, widen(grad[i]) * step.grad_scale, w[i], m[i], v[i]);
}

template <class T>
void sgd(float* __restrict w, float* __restrict v, const T* __restrict grad, const SgdStep& step,
         index_t n) {
  const float ahead = step.nesterov ? step.momentum : 1.0F;
  const float direct = step.nesterov ? 1.0F : 0.0F;
  for (index_t i = 0; i < n; ++i) {
    const float g = widen(grad[i]) * step.grad_scale + step.decay * w[i];
    const float speed = step.momentum * v[i] + g;
    v[i] = speed;
    w[i] -= step.lr * (direct * g + ahead * speed);
  }
}

inline void axpby(float a, const float* x, float b, float* y, index_t n) {
  T3D_INDEPENDENT
  for (index_t i = 0; i < n; ++i) y[i] = a * x[i] + b * y[i];
}

constexpr int kSumLanes = 16, kSumParts = kSumLanes / kWideLanes;

// The product of two fp32 numbers is exact in fp64: fused or not, it is the same.
template <class T>
double sum_squares(const T* x, index_t n) {
  Wide sum[kSumParts] = {};
  index_t at = 0;
  for (; at + kSumLanes <= n; at += kSumLanes)
#pragma GCC unroll 8
    for (int part = 0; part < kSumParts; ++part) {
      const Wide value = load_widened(x + at + part * kWideLanes);
      sum[part] += value * value;
    }
  double lanes[kSumLanes];
  __builtin_memcpy(lanes, sum, sizeof lanes);
  for (index_t lane = 0; at + lane < n; ++lane) {
    const auto value = static_cast<double>(widen(x[at + lane]));
    lanes[lane] += value * value;
  }
  for (int half = kSumLanes / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

}  // namespace
}  // namespace t3d::cpu::T3D_ISA
