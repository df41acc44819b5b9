// The loops that make new weights, and the sums that decide how far they go. Replicas on unlike
// processors hold the same weights only if these have the same bits on every instruction set, so
// they are compiled without relaxed arithmetic (src/CMakeLists.txt): every operation is IEEE's, no
// product is fused with a sum, and sums keep an order that vectors of any width can follow.
#pragma once
#include "core/dtype.hpp"
#include "core/types.hpp"

namespace t3d::cpu {

/// Coefficients of one AdamW step, so that the loop has no powers.
struct AdamWStep {
  float beta1, beta2, eps, grad_scale;
  float step_size;   // lr / (1 - beta1^step)
  float root_scale;  // 1 / sqrt(1 - beta2^step)
  float shrink;      // lr * decay
};

struct SgdStep {
  float lr, momentum, decay, grad_scale;
  bool nesterov;
};

template <class T>
struct UpdateKernelsFor {
  /// `grad` may be of either dtype, the state is fp32.
  void (*adamw)(float* w, float* m, float* v, const T* grad, const AdamWStep& step, index_t n);
  /// lr of the step: 1. `direction` may be grad.
  void (*adam_direction)(const float* w, float* m, float* v, const T* grad, const AdamWStep& step,
                         float* direction, index_t n);
  void (*sgd)(float* w, float* v, const T* grad, const SgdStep& step, index_t n);

  /// Element i into lane i % 16, in fp64; then lanes by halves.
  double (*sum_squares)(const T* x, index_t n);
  /// packed += upper triangle of the dots of n rows over `columns` columns. Of each 128 columns,
  /// column c into lane c % 8, in fp64; then lanes by halves.
  void (*gram)(const T* x, index_t ld, index_t n, index_t columns, double* packed,
               float* workspace);
  /// out = sum over i of factors[i] * columns [begin, begin + columns) of rows[i].
  void (*combine_to_float)(const T* const* rows, const double* factors, index_t count,
                           index_t begin, float* out, index_t columns);
  void (*combine_to_bf16)(const T* const* rows, const double* factors, index_t count, index_t begin,
                          bf16* out, index_t columns);
};

struct UpdateKernels {
  UpdateKernelsFor<float> f32;
  UpdateKernelsFor<bf16> b16;
  /// y = a x + b y; x may be y.
  void (*axpby)(float a, const float* x, float b, float* y, index_t n);
  /// Floats that one call of gram needs (64-byte aligned).
  index_t (*gram_workspace)(index_t n);
};

}  // namespace t3d::cpu
