// Transposing small matrices, one per sequence. 32 x 32 numbers at a time go through shared memory,
// so that a warp reads and writes runs of 128 bytes; the odd leading dimension there keeps the
// columns of a tile in different banks. Moves 8 bytes per token and head, where attention itself
// moves about 8 per token, head and head column: not worth more. Not measured.
#include "ops/cuda/attention_cudnn_layout.hpp"
#include "ops/cuda/launch.cuh"

namespace t3d::cuda {
namespace {

constexpr int kTile = 32, kRowsAtOnce = 8;

struct Matrices {
  float* data = nullptr;
  index_t ld = 0, step = 0;  // step: from one matrix to the next
};

/// to [cols, rows] = from [rows, cols] transposed, `count` times.
__global__ void __launch_bounds__(kTile* kRowsAtOnce)
    transpose(Matrices from, Matrices to, int rows, int cols, int row_tiles) {
  __shared__ float tile[kTile][kTile + 1];
  const index_t matrix = blockIdx.x / static_cast<unsigned>(row_tiles);
  const int row0 = static_cast<int>(blockIdx.x % static_cast<unsigned>(row_tiles)) * kTile;
  const int col0 = static_cast<int>(blockIdx.y) * kTile;
  const int x = static_cast<int>(threadIdx.x) % kTile, y = static_cast<int>(threadIdx.x) / kTile;
  const float* source = from.data + matrix * from.step;
  float* target = to.data + matrix * to.step;
#pragma unroll
  for (int i = y; i < kTile; i += kRowsAtOnce)
    if (row0 + i < rows && col0 + x < cols) tile[i][x] = source[(row0 + i) * from.ld + col0 + x];
  __syncthreads();
#pragma unroll
  for (int i = y; i < kTile; i += kRowsAtOnce)
    if (col0 + i < cols && row0 + x < rows) target[(col0 + i) * to.ld + row0 + x] = tile[x][i];
}

void transpose_all(Queue& queue, index_t count, index_t rows, index_t cols, const Matrices& from,
                   const Matrices& to) {
  const index_t row_tiles = blocks_for(rows, kTile);
  launch(queue, {count * row_tiles, blocks_for(cols, kTile), 1, kTile * kRowsAtOnce}, transpose,
         from, to, static_cast<int>(rows), static_cast<int>(cols), static_cast<int>(row_tiles));
}

}  // namespace

void statistics_from_lse(Queue& queue, ConstTensorView lse, index_t length, TensorView statistics) {
  if (lse.empty()) return;
  const Matrices from{static_cast<float*>(const_cast<void*>(lse.data)), lse.ld, length * lse.ld};
  const Matrices to{statistics.as<float>(), length, lse.cols * length};
  transpose_all(queue, lse.rows / length, length, lse.cols, from, to);
}

void lse_from_statistics(Queue& queue, ConstTensorView statistics, index_t length, TensorView lse) {
  if (lse.empty()) return;
  const Matrices from{static_cast<float*>(const_cast<void*>(statistics.data)), length,
                      lse.cols * length};
  const Matrices to{lse.as<float>(), lse.ld, length * lse.ld};
  transpose_all(queue, lse.rows / length, lse.cols, length, from, to);
}

}  // namespace t3d::cuda
