// Sums down the columns of a matrix, in two kernels without atomics. In the first one a warp's
// lanes own N columns each, a block's eight warps take every eighth of its rows, and the blocks of
// one column tile share the rows out; each block adds its warps' sums in order and writes one row
// of partial sums. The second one adds the partial rows in order. How many blocks share a column
// tile depends on the shape alone, not on the device, so that results are the same on every GPU.
#pragma once
#include "ops/cuda/elements.cuh"

namespace t3d::cuda {

struct ColumnGrid {
  index_t tiles = 0;   // blocks beside each other
  index_t shares = 0;  // blocks that share the rows of one tile
};
/// About two blocks for each of an H200's 132 multiprocessors: one wave of kernels with up to 128
/// registers, and few partial rows.
[[nodiscard]] inline ColumnGrid column_grid(index_t rows, index_t cols, index_t width) {
  constexpr index_t kBlocks = 264, kLeastRows = 16;
  const index_t tiles = blocks_for(cols, kWarp * width);
  const index_t wanted = std::max<index_t>(1, kBlocks / std::max<index_t>(1, tiles));
  return {tiles, std::min(wanted, blocks_for(rows, kLeastRows))};
}

/// Adds the warps' sums of N columns per lane and writes them to the block's row of `partial`
/// [.., cols]. All threads of the block; `shared` has room for kElementThreads * N floats.
template <int N>
__device__ __forceinline__ void store_column_sums(const float (&sum)[N], float* shared,
                                                  float* partial, int cols) {
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int i = 0; i < N; ++i) shared[thread * N + i] = sum[i];
  __syncthreads();
  const int col = static_cast<int>(blockIdx.x) * kWarp * N + thread;
  if (thread < kWarp * N && col < cols) {
    float total = 0;
#pragma unroll
    for (int w = 0; w < kElementWarps; ++w) total += shared[w * kWarp * N + thread];
    partial[blockIdx.y * static_cast<index_t>(cols) + col] = total;
  }
  __syncthreads();
}

/// out[c] += sum over p of partial[p, c], p in order within eight interleaved sums. blockIdx.y
/// chooses the first or second matrix of partial sums [shares, cols] and its output.
[[maybe_unused]] static __global__ void __launch_bounds__(kElementThreads)
    add_column_partials(const float* partial, int shares, int cols, float* first, float* second) {
  __shared__ float shared[kElementThreads];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int col = static_cast<int>(blockIdx.x) * kWarp + lane;
  float* out = blockIdx.y == 0 ? first : second;
  partial += blockIdx.y * static_cast<index_t>(shares) * cols;
  float sum = 0;
  if (col < cols)
#pragma unroll 4
    for (int p = warp; p < shares; p += kElementWarps)
      sum += partial[static_cast<index_t>(p) * cols + col];
  shared[threadIdx.x] = sum;
  __syncthreads();
  if (warp > 0 || col >= cols) return;
  float total = 0;
#pragma unroll
  for (int w = 0; w < kElementWarps; ++w) total += shared[w * kWarp + lane];
  out[col] += total;
}

/// `second` may be null: then there is one matrix of partial sums.
inline void add_partials(Queue& queue, const ConstTensorView& partial, index_t shares, float* first,
                         float* second) {
  LaunchShape shape;
  shape.threads = kElementThreads;
  shape.blocks_x = blocks_for(partial.cols, kWarp);
  shape.blocks_y = second == nullptr ? 1 : 2;
  launch(queue, shape, add_column_partials, partial.as<float>(), static_cast<int>(shares),
         static_cast<int>(partial.cols), first, second);
}

}  // namespace t3d::cuda
