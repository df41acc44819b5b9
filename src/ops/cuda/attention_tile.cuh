// Pieces of flash attention on tensor cores: tiles of 16-bit numbers in shared memory, mma
// fragments of them, and the products that both passes are made of.
//
// A tile has rows of kSize numbers. Its 16-byte chunks are permuted within each row by the row's
// number (chunk ^ row % 8), so that the eight rows that one ldmatrix reads lie in different banks.
#pragma once
#include "ops/cuda/attention_problem.cuh"
#include "ops/cuda/ptx.cuh"

namespace t3d::cuda {

/// kSize: the head size rounded up to 64 or 128; columns beyond the head are zero.
template <class T, int kSize>
struct Tile {
  static constexpr int kChunks = kSize / 8;
  static_assert(kChunks >= 8);
  T* data;

  static constexpr int bytes(int rows) { return rows * kSize * static_cast<int>(sizeof(T)); }
  __device__ __forceinline__ T* chunk(int row, int number) const {
    return data + row * kSize + (number ^ (row & 7)) * 8;
  }

  /// Starts copying rows [0, rows) of a head from `row0` on; zeros from `valid` rows on.
  template <int kThreads>
  __device__ __forceinline__ void fetch(const Heads<const T>& from, index_t row0, int head,
                                        int rows, int valid, int size) const {
    for (int i = static_cast<int>(threadIdx.x); i < rows * kChunks; i += kThreads) {
      const int r = i / kChunks, c = i % kChunks;
      const bool there = r < valid && c * 8 < size;  // a head is whole chunks
      const T* source = there ? from.at(row0 + r, head, size) + c * 8 : from.data;
      ptx::cp_async_16(chunk(r, c), source, there ? 16 : 0);
    }
  }
  /// A: 16 rows from `row`, 16 columns from `col`.
  __device__ __forceinline__ void load_a(std::uint32_t (&a)[4], int row, int col) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    ptx::ldmatrix_x4(a, chunk(row + lane % 16, col / 8 + lane / 16));
  }
  /// B = tile transposed: 16 columns of B are rows of the tile from `row`; depth from `col`.
  __device__ __forceinline__ void load_b(std::uint32_t (&b)[4], int row, int col) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    ptx::ldmatrix_x4(b, chunk(row + lane / 16 * 8 + lane % 8, col / 8 + lane / 8 % 2));
  }
  /// B = tile: depth is rows of the tile from `row`; 16 columns from `col`.
  __device__ __forceinline__ void load_b_rows(std::uint32_t (&b)[4], int row, int col) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    ptx::ldmatrix_x4_trans(b, chunk(row + lane / 8 % 2 * 8 + lane % 8, col / 8 + lane / 16));
  }
};

/// Sums of one warp: 16 rows, 8 * kBlocks columns, as mma leaves them.
template <int kBlocks>
struct WarpSums {
  float value[kBlocks][4];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int n = 0; n < kBlocks; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) value[n][i] = 0;
  }
  template <class T>
  __device__ __forceinline__ void add_product(int block, const std::uint32_t (&a)[4],
                                              const std::uint32_t (&b)[4]) {
    const std::uint32_t low[2] = {b[0], b[1]}, high[2] = {b[2], b[3]};
    ptx::mma_m16n8k16<T>(value[block], a, low);
    ptx::mma_m16n8k16<T>(value[block + 1], a, high);
  }
};

/// scores[16, tile rows] = rows [row, row + 16) of `rows` times tile transposed.
template <class T, int kSize, int kBlocks>
__device__ __forceinline__ void multiply_scores(WarpSums<kBlocks>& scores,
                                                const Tile<T, kSize>& rows, int row,
                                                const Tile<T, kSize>& tile) {
  scores.clear();
#pragma unroll
  for (int col = 0; col < kSize; col += 16) {
    std::uint32_t a[4];
    rows.load_a(a, row, col);
#pragma unroll
    for (int n = 0; n < kBlocks; n += 2) {
      std::uint32_t b[4];
      tile.load_b(b, n * 8, col);
      scores.template add_product<T>(n, a, b);
    }
  }
}

/// sums[16, kSize] += weights[16, tile rows] times tile. The weights are rounded to T: as sums of
/// one product they already lie as the next one's A fragments.
template <class T, int kSize, int kBlocks>
__device__ __forceinline__ void add_weighted(WarpSums<kSize / 8>& sums,
                                             const WarpSums<kBlocks>& weights,
                                             const Tile<T, kSize>& tile) {
#pragma unroll
  for (int n = 0; n < kBlocks; n += 2) {
    const float(&w)[4] = weights.value[n];
    const float(&x)[4] = weights.value[n + 1];
    const std::uint32_t a[4] = {pack_pair<T>(w[0], w[1]), pack_pair<T>(w[2], w[3]),
                                pack_pair<T>(x[0], x[1]), pack_pair<T>(x[2], x[3])};
#pragma unroll
    for (int col = 0; col < kSize; col += 16) {
      std::uint32_t b[4];
      tile.load_b_rows(b, n * 8, col);
      sums.template add_product<T>(col / 8, a, b);
    }
  }
}

/// Rounds 16 rows of sums (times the factor of each thread's two rows) and writes them to a head:
/// through `stage`, the warp's own 16 rows of shared memory, so that whole chunks go out.
template <class T, int kSize>
__device__ __forceinline__ void store_sums(const WarpSums<kSize / 8>& sums,
                                           const float (&factor)[2], const Tile<T, kSize>& stage,
                                           int stage_row, const Heads<T>& to, index_t row0,
                                           int head, int valid, int size, bool wide) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  __syncwarp();
#pragma unroll
  for (int n = 0; n < kSize / 8; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<std::uint32_t*>(stage.chunk(stage_row + g + 8 * half, n) + 2 * t) =
          pack_pair<T>(sums.value[n][2 * half] * factor[half],
                       sums.value[n][2 * half + 1] * factor[half]);
  __syncwarp();
  const int chunks = size / 8;
  for (int i = lane; i < 16 * chunks; i += 32) {
    const int r = i / chunks, c = i % chunks;
    if (r >= valid) continue;
    const T* from = stage.chunk(stage_row + r, c);
    T* out = to.at(row0 + r, head, size) + c * 8;
    if (wide)
      *reinterpret_cast<Pack<T, 8>*>(out) = *reinterpret_cast<const Pack<T, 8>*>(from);
    else
      for (int j = 0; j < 8; ++j) out[j] = from[j];
  }
}

}  // namespace t3d::cuda
