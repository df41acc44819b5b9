// Which tile of C a block takes, and how a sum becomes an element of C. Shared by the tensor-core
// kernel (gemm_mma.cuh), the fp32 kernel (gemm_simt.cu) and the sum over slices of K
// (gemm_split.cu).
#pragma once
#include "ops/cuda/gemm_problem.hpp"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/numbers.cuh"

namespace t3d::cuda {

/// Neighbouring blocks share operands in the second-level cache when they form squares of C rather
/// than rows: blocks run down strips of `kStrip` tile rows.
struct TileAt {
  int row, col;
};
__device__ __forceinline__ TileAt tile_of_block(const GemmProblem& problem, int tile_m,
                                                int tile_n) {
  constexpr int kStrip = 8;
  const int rows = (problem.m + tile_m - 1) / tile_m, cols = (problem.n + tile_n - 1) / tile_n;
  const int block = static_cast<int>(blockIdx.x);
  const int first = block / (kStrip * cols) * kStrip;
  const int height = min(kStrip, rows - first), rest = block % (kStrip * cols);
  return {(first + rest % height) * tile_m, rest / height * tile_n};
}

__device__ __forceinline__ float scale_of(const GemmOutput& out) {
  const float a = out.scale_a != nullptr ? *out.scale_a : 1.0F;
  return out.scale_b != nullptr ? a * *out.scale_b : a;
}

/// n neighbours of one row, of which those before `cols` exist.
template <class C, std::size_t count>
__device__ __forceinline__ void finish(const GemmOutput& out, float scale, index_t row, int col,
                                       int cols, float (&sum)[count]) {
  constexpr int n = static_cast<int>(count);
  C* target = static_cast<C*>(out.c) + row * out.ldc + col;
#pragma unroll
  for (int j = 0; j < n; ++j) {
    sum[j] *= scale;
    if (out.bias != nullptr && col + j < cols) sum[j] += out.bias[col + j];
  }
  if (out.vector && col + n <= cols) {
    Pack<C, n> pack{};
    if (out.accumulate) pack = *reinterpret_cast<const Pack<C, n>*>(target);
#pragma unroll
    for (int j = 0; j < n; ++j)
      pack.value[j] = from_float<C>(out.accumulate ? sum[j] + to_float(pack.value[j]) : sum[j]);
    *reinterpret_cast<Pack<C, n>*>(target) = pack;
    return;
  }
#pragma unroll
  for (int j = 0; j < n; ++j)
    if (col + j < cols)
      target[j] = from_float<C>(out.accumulate ? sum[j] + to_float(target[j]) : sum[j]);
}

}  // namespace t3d::cuda
