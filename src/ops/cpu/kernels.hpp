// The inner loops of the cpu back end: plain functions over rows, compiled once per instruction
// set (isa_*.cpp) and chosen at run time, so that one binary runs on every node of a cluster.
// Pointers only: an instruction-set unit must not instantiate code that other units share.
#pragma once
#include <cstdint>
#include <vector>

#include "ops/cpu/update_kernels.hpp"

namespace t3d::cpu {

/// Constants of one row of a normalisation's backward pass.
struct NormRow {
  float mean, rstd;
  float centre;  // sums0 / length, 0 for rms
  float slope;   // sums1 / length
};

struct DropoutRow {
  std::uint64_t seed, stream;
  index_t first;            // global index of the row's first element
  std::uint32_t threshold;  // kept iff 24 random bits >= threshold
  double factor;
};

/// Columns of a matrix product by rows at a time.
inline constexpr index_t kDots = 4;

/// One sequence and one head; pointers at its first row and column.
template <class T>
struct AttentionHead {
  index_t length, size;
  bool causal;
  const T *q, *k, *v;
  index_t ld;  // of q, k and v
  T* out;      // written in the forward pass, read in the backward pass
  index_t out_ld;
  float* lse;
  index_t lse_ld;
};

/// All query heads of one key-value head: query head g is `head` moved by g heads.
template <class T>
struct AttentionGroup {
  AttentionHead<T> head;
  index_t heads;
  const T* dout;  // leading dimension dout_ld
  index_t dout_ld;
  T *dq, *dk, *dv;
  index_t grad_ld;
};

/// The query heads of one key-value head in one new row, and what is kept for them: `count` rows of
/// keys and values with leading dimension ld. The heads lie one after another in q and out.
template <class T>
struct KeptHeads {
  index_t heads, size, count;
  const T *q, *keys, *values;
  index_t ld;
  T* out;
};

template <class T>
struct KernelsFor {
  void (*gelu)(const T* x, T* y, index_t n);
  void (*gelu_backward)(const T* x, const T* dy, T* dx, index_t n);
  void (*swiglu)(const T* gate, const T* up, T* y, index_t n);
  void (*swiglu_backward)(const T* gate, const T* up, const T* dy, T* dgate, T* dup, index_t n);

  void (*norm_stats)(const T* x, index_t n, bool layer, float* stats);
  void (*norm_apply)(const T* x, float mean, float rstd, const float* gamma, const float* beta,
                     T* y, index_t n);
  void (*norm_backward_stats)(const T* dy, const T* x, float mean, float rstd, const float* gamma,
                              index_t n, float* sums);
  /// Adds to dgamma and dbeta.
  void (*norm_backward_apply)(const T* dy, const T* x, const NormRow& row, const float* gamma,
                              index_t n, bool accumulate, T* dx, float* dgamma, float* dbeta);

  /// stats = (max, sum of exp(x - max)), n > 0.
  void (*xent_stats)(const T* x, index_t n, float* stats);
  void (*xent_grad)(T* x, index_t n, float lse, float scale);

  /// Rotates `heads` heads of 2*half columns.
  void (*rope)(T* x, index_t heads, index_t half, const float* cosine, const float* sine,
               float sign);
  void (*scale)(T* x, float factor, index_t n);
  void (*add_to_float)(const T* x, float* sums, index_t n);
  void (*dropout)(T* x, index_t n, const DropoutRow& row);
  double (*sum)(const T* x, index_t n);

  void (*attention_forward)(const AttentionHead<T>& head, float* workspace);
  void (*attention_backward)(const AttentionGroup<T>& group, float* workspace);

  /// out[n] = sum over k of x[k] w[n, k], n < kDots and n < columns; w has leading dimension ld.
  void (*dots)(const float* x, const T* w, index_t ld, index_t depth, index_t columns, float* out);
  /// `workspace`: heads.count + 2 heads.size floats.
  void (*kept_attention)(const KeptHeads<T>& heads, float* workspace);
};

struct Kernels {
  const char* isa;
  const UpdateKernels* update;
  KernelsFor<float> f32;
  KernelsFor<bf16> b16;
  void (*copy_f32_bf16)(const float* from, bf16* to, index_t n);
  void (*copy_bf16_f32)(const bf16* from, float* to, index_t n);
  void (*add_f32_f32)(const float* a, float* b, index_t n);
  void (*add_bf16_bf16)(const bf16* a, bf16* b, index_t n);
  void (*add_f32_bf16)(const float* a, bf16* b, index_t n);
  void (*add_bf16_f32)(const bf16* a, float* b, index_t n);
  /// Floats that one call needs (64-byte aligned).
  index_t (*attention_workspace)(index_t length, index_t size);
};

/// The best set that this processor runs; the environment's T3D_ISA (v2, v3, v4) lowers it.
[[nodiscard]] const Kernels& kernels();
/// All that this processor runs, the best one last.
[[nodiscard]] std::vector<const Kernels*> all_kernels();

template <class T>
[[nodiscard]] const KernelsFor<T>& kernels_for();
template <>
[[nodiscard]] inline const KernelsFor<float>& kernels_for() {
  return kernels().f32;
}
template <>
[[nodiscard]] inline const KernelsFor<bf16>& kernels_for() {
  return kernels().b16;
}

template <class T>
[[nodiscard]] const UpdateKernelsFor<T>& update_kernels_for();
template <>
[[nodiscard]] inline const UpdateKernelsFor<float>& update_kernels_for() {
  return kernels().update->f32;
}
template <>
[[nodiscard]] inline const UpdateKernelsFor<bf16>& update_kernels_for() {
  return kernels().update->b16;
}

}  // namespace t3d::cpu
