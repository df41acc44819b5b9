// Pieces of flash attention without tensor cores: matrices of fp32 in shared memory, and the
// products that both passes are made of. Every thread owns a small rectangle of each product, so
// that 16-byte reads serve several multiply-adds.
#pragma once
#include "ops/cuda/attention_problem.cuh"
#include "ops/cuda/ptx.cuh"
#include "ops/cuda/reduce.cuh"

namespace t3d::cuda::simt {

inline constexpr int kThreads = 128, kWarps = kThreads / kWarp;
using Four = Pack<float, 4>;

/// Heads up to 64 * kColumns. All matrices in shared memory are fp32; rows are padded by 16 bytes,
/// so that eight lanes that read down a column meet all banks once.
template <int kColumns_>
struct Shape {
  static constexpr int kColumns = kColumns_, kSide = kColumns <= 2 ? 32 : 16;
  static constexpr int kPitch = 64 * kColumns + 4, kWeightPitch = kSide + 4;
  // Rectangles: of scores, 16 x 8 threads; of sums, 8 x 16 threads with 4 columns each in every 64.
  static constexpr int kScoreRows = kSide / 16, kScoreCols = kSide / 8, kSumRows = kSide / 8;
  // Offsets in shared memory; what only the backward pass needs comes last.
  static constexpr int kMatrix = kSide * kPitch, kWeights = kSide * kWeightPitch;
  static constexpr int kTileA = 0, kTileB = kMatrix, kRowsA = 2 * kMatrix;
  static constexpr int kWeightsA = 3 * kMatrix, kFactors = kWeightsA + kWeights;
  static constexpr int kRowsB = kFactors + kSide, kWeightsB = kRowsB + kMatrix;
  static constexpr int kForwardBytes = kRowsB * 4, kBackwardBytes = (kWeightsB + kWeights) * 4;
};

__device__ __forceinline__ float* shared(int offset) {
  return ptx::shared_memory<float>() + offset;
}
__device__ __forceinline__ int thread() { return static_cast<int>(threadIdx.x); }

/// A thread's first row and column of scores (columns are 8 apart), and of sums.
template <class S>
__device__ __forceinline__ int score_row() {
  return thread() / 8 * S::kScoreRows;
}
__device__ __forceinline__ int score_col() { return thread() % 8; }
template <class S>
__device__ __forceinline__ int sum_row() {
  return thread() / 16 * S::kSumRows;
}
__device__ __forceinline__ int sum_col() { return thread() % 16 * 4; }

/// Rows [row0, row0 + kSide) of a head into shared memory; zeros from `valid` on, and behind the
/// head up to the next four.
template <class S, class T>
__device__ __forceinline__ void load_rows(int to, const Heads<const T>& from, index_t row0,
                                          int head, int valid, int size) {
  const int lane = thread() % kWarp, cols = (size + 3) / 4 * 4;
  for (int r = thread() / kWarp; r < S::kSide; r += kWarps)
    for (int c = lane; c < cols; c += kWarp) {
      const bool there = r < valid && c < size;
      *shared(to + r * S::kPitch + c) = there ? to_float(from.at(row0 + r, head, size)[c]) : 0.0F;
    }
}

template <class S>
using Scores = float[S::kScoreRows][S::kScoreCols];
template <class S>
using Sums = float[S::kSumRows][S::kColumns][4];

/// scores = rows times tile transposed.
template <class S>
__device__ __forceinline__ void multiply(float (&scores)[S::kScoreRows][S::kScoreCols], int rows,
                                         int tile, int size) {
#pragma unroll
  for (int r = 0; r < S::kScoreRows; ++r)
#pragma unroll
    for (int n = 0; n < S::kScoreCols; ++n) scores[r][n] = 0;
  const float* a = shared(rows + score_row<S>() * S::kPitch);
  const float* b = shared(tile + score_col() * S::kPitch);
#pragma unroll 4
  for (int c = 0; c < size; c += 4) {
    Four x[S::kScoreRows], y[S::kScoreCols];
#pragma unroll
    for (int r = 0; r < S::kScoreRows; ++r)
      x[r] = *reinterpret_cast<const Four*>(a + r * S::kPitch + c);
#pragma unroll
    for (int n = 0; n < S::kScoreCols; ++n)
      y[n] = *reinterpret_cast<const Four*>(b + 8 * n * S::kPitch + c);
#pragma unroll
    for (int r = 0; r < S::kScoreRows; ++r)
#pragma unroll
      for (int n = 0; n < S::kScoreCols; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) scores[r][n] += x[r].value[i] * y[n].value[i];
  }
}

template <class S>
__device__ __forceinline__ void put_weights(int to, const Scores<S>& weights) {
#pragma unroll
  for (int r = 0; r < S::kScoreRows; ++r)
#pragma unroll
    for (int n = 0; n < S::kScoreCols; ++n)
      *shared(to + (score_row<S>() + r) * S::kWeightPitch + score_col() + 8 * n) = weights[r][n];
}

/// sums += weights times tile.
template <class S>
__device__ __forceinline__ void add_weighted(Sums<S>& sums, int weights, int tile) {
#pragma unroll 2
  for (int j = 0; j < S::kSide; j += 4) {
    Four w[S::kSumRows];
#pragma unroll
    for (int r = 0; r < S::kSumRows; ++r)
      w[r] = *reinterpret_cast<const Four*>(
          shared(weights + (sum_row<S>() + r) * S::kWeightPitch + j));
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int k = 0; k < S::kColumns; ++k) {
        const Four x =
            *reinterpret_cast<const Four*>(shared(tile + (j + i) * S::kPitch + sum_col() + 64 * k));
#pragma unroll
        for (int r = 0; r < S::kSumRows; ++r)
#pragma unroll
          for (int c = 0; c < 4; ++c) sums[r][k][c] += w[r].value[i] * x.value[c];
      }
  }
}

template <class S>
__device__ __forceinline__ void clear(Sums<S>& sums) {
#pragma unroll
  for (int i = 0; i < S::kSumRows * S::kColumns * 4; ++i)
    sums[i / (4 * S::kColumns)][i / 4 % S::kColumns][i % 4] = 0;
}

/// Multiplies each row of sums with its factor in shared memory.
template <class S>
__device__ __forceinline__ void multiply_rows(Sums<S>& sums) {
#pragma unroll
  for (int r = 0; r < S::kSumRows; ++r) {
    const float factor = *shared(S::kFactors + sum_row<S>() + r);
#pragma unroll
    for (int i = 0; i < 4 * S::kColumns; ++i) sums[r][i / 4][i % 4] *= factor;
  }
}

template <class S, class T>
__device__ __forceinline__ void store(const Sums<S>& sums, float factor, const Heads<T>& to,
                                      index_t row0, int head, int valid, int size) {
#pragma unroll
  for (int r = 0; r < S::kSumRows; ++r) {
    if (sum_row<S>() + r >= valid) continue;
    T* row = to.at(row0 + sum_row<S>() + r, head, size);
#pragma unroll
    for (int i = 0; i < 4 * S::kColumns; ++i) {
      const int col = sum_col() + i / 4 * 64 + i % 4;
      if (col < size) row[col] = from_float<T>(sums[r][i / 4][i % 4] * factor);
    }
  }
}

}  // namespace t3d::cuda::simt
