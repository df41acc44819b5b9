// One attention call as its kernels see it.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "ops/cuda/launch.cuh"
#include "ops/cuda/numbers.cuh"
#include "ops/ops.hpp"

namespace t3d::cuda {

/// Head slices of a matrix [sequences*length, n*D]: head h at columns h*D.
template <class T>
struct Heads {
  T* data = nullptr;
  index_t ld = 0;
  /// First element of `head` in row `row`.
  __device__ __forceinline__ T* at(index_t row, int head, int size) const {
    return data + row * ld + head * size;
  }
};

template <class T>
struct AttentionProblem {
  Heads<const T> q, k, v, dout;  // dout: backward only
  Heads<T> out, dq, dk, dv;      // out: forward; the others: backward
  float* lse = nullptr;          // [sequences*length, heads]
  index_t lse_ld = 0;
  const float* delta = nullptr;                    // [sequences*length, heads] sum of dout * out
  int length = 0, heads = 0, group = 0, size = 0;  // group: query heads per kv head
  bool causal = false, wide_rows = false;          // wide_rows: out, dq, dk, dv take 16-byte stores
  float scale = 0;                                 // 1 / sqrt(size)
};

inline constexpr float kLog2E = 1.4426950408889634F, kLn2 = 0.6931471805599453F;

/// qkv (and dqkv) as their three parts.
template <class T, class Void>
void split_heads(const AttentionArgs& args, const BasicView<Void>& qkv, Heads<T>& q, Heads<T>& k,
                 Heads<T>& v) {
  auto* data = static_cast<T*>(qkv.data);
  q = {data, qkv.ld};
  k = {data + args.heads * args.head_size, qkv.ld};
  v = {data + (args.heads + args.kv_heads) * args.head_size, qkv.ld};
}

template <class T>
AttentionProblem<T> problem_of(const AttentionArgs& args, ConstTensorView lse) {
  AttentionProblem<T> problem;
  split_heads<const T>(args, args.qkv, problem.q, problem.k, problem.v);
  problem.lse = static_cast<float*>(const_cast<void*>(lse.data));
  problem.lse_ld = lse.ld;
  problem.length = static_cast<int>(args.length);
  problem.heads = static_cast<int>(args.heads);
  problem.group = static_cast<int>(args.heads / args.kv_heads);
  problem.size = static_cast<int>(args.head_size);
  problem.causal = args.causal;
  problem.scale = 1.0F / sqrtf(static_cast<float>(args.head_size));
  return problem;
}

[[nodiscard]] inline bool aligned_16(const ConstTensorView& view) {
  return reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0 &&
         view.ld * size_of(view.dtype) % 16 == 0;
}

/// attention_simt.cu: any number format, head sizes up to kMaxSimtHead.
inline constexpr index_t kMaxSimtHead = 256;
void simt_forward(Queue&, const AttentionArgs&, TensorView out, TensorView lse);
void simt_backward(Queue&, Device&, const AttentionArgs&, ConstTensorView out, ConstTensorView lse,
                   ConstTensorView dout, TensorView dqkv);

/// attention_mma_*.cu: bf16 and fp16, head sizes up to 128 that are multiples of 8, 16-byte aligned
/// qkv and (backward) dout.
inline constexpr index_t kMaxMmaHead = 128;
void mma_forward(Queue&, const AttentionArgs&, TensorView out, TensorView lse);
void mma_backward(Queue&, Device&, const AttentionArgs&, ConstTensorView out, ConstTensorView lse,
                  ConstTensorView dout, TensorView dqkv);

/// delta [rows, heads] = sum over a head of dout * out (attention_delta.cu).
[[nodiscard]] Tensor attention_delta(Queue&, Device&, const AttentionArgs&, ConstTensorView out,
                                     ConstTensorView dout);

}  // namespace t3d::cuda
