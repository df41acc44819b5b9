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

/// What the backward pass needs to know of one query: lse in base 2, and the sum of dout * out over
/// the head, which a softmax's derivative subtracts everywhere.
struct alignas(8) QueryStats {
  float lse = 0, delta = 0;
};

template <class T>
struct AttentionProblem {
  Heads<const T> q, k, v, dout;  // dout: backward only
  Heads<T> out, dq, dk, dv;      // out: forward; the others: backward
  float* lse = nullptr;          // [sequences*length, heads]
  index_t lse_ld = 0;
  const QueryStats* stats = nullptr;               // backward: [sequences*heads, stats_pitch]
  int stats_pitch = 0;                             // even, at least length
  int length = 0, heads = 0, group = 0, size = 0;  // group: query heads per kv head
  bool causal = false, wide_rows = false;          // wide_rows: out, dq, dk, dv take 16-byte stores
  float scale = 0, scale_log2e = 0;                // 1 / sqrt(size), and for exponents of base 2

  __device__ __forceinline__ const QueryStats* stats_of(int sequence, int head) const {
    return stats + (static_cast<index_t>(sequence) * heads + head) * stats_pitch;
  }
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
  problem.scale_log2e = problem.scale * kLog2E;
  return problem;
}

/// A block for every `rows` rows of each of `heads` heads. Blocks start in the order of x, then y,
/// then z. So all heads' heaviest tiles come first (kernels count tiles that way) and the last ones
/// to start are short; and one sequence comes after the other, as its keys and values should stay
/// in the cache.
[[nodiscard]] inline LaunchShape shape_of(const AttentionArgs& args, index_t heads, index_t rows,
                                          int threads, index_t shared_bytes) {
  LaunchShape shape;
  shape.threads = threads;
  shape.blocks_x = heads;
  shape.blocks_y = blocks_for(args.length, rows);
  shape.blocks_z = args.sequences;
  shape.shared_bytes = shared_bytes;
  return shape;
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

/// [sequences*heads, length rounded up to even] of QueryStats, as pairs of fp32
/// (attention_delta.cu).
[[nodiscard]] Tensor attention_stats(Queue&, Device&, const AttentionArgs&, ConstTensorView out,
                                     ConstTensorView lse, ConstTensorView dout);

/// Fills in what both backward passes share.
template <class T>
AttentionProblem<T> backward_problem(const AttentionArgs& args, const Tensor& stats,
                                     ConstTensorView lse, ConstTensorView dout, TensorView dqkv) {
  AttentionProblem<T> problem = problem_of<T>(args, lse);
  split_heads<T>(args, dqkv, problem.dq, problem.dk, problem.dv);
  problem.dout = {dout.as<T>(), dout.ld};
  problem.stats = static_cast<const QueryStats*>(stats.view().data);
  problem.stats_pitch = static_cast<int>(stats.view().cols / 2);
  return problem;
}

}  // namespace t3d::cuda
