// One operand of the tensor-core matmul on its way from global memory to registers.
//
// A tile in shared memory keeps the order of global memory: where K is contiguous its rows are rows
// of A (columns of B) and hold one step of K; else its rows are indices of K and hold the tile's
// extent. Rows are cut into chunks of 16 bytes, the unit of copies and of ldmatrix; chunk c of row
// r lies at place c ^ swizzle(r), so that the eight rows that ldmatrix reads at once lie in
// different banks without padding. ldmatrix, plain or transposing, brings both orders into the same
// registers; for 32-bit numbers it cannot transpose, and the fragment is read number by number.
#pragma once
#include "ops/cuda/numbers.cuh"
#include "ops/cuda/ptx.cuh"

namespace t3d::cuda {

template <class T, int extent, int depth_bytes, bool depth_contiguous>
struct OperandTile {
  static constexpr bool kDepthContiguous = depth_contiguous;
  static constexpr int kSize = static_cast<int>(sizeof(T));
  static constexpr int kChunk = 16 / kSize;  // numbers in one chunk
  static constexpr int kDepth = depth_bytes / kSize;
  static constexpr int kRows = depth_contiguous ? extent : kDepth;
  static constexpr int kRowBytes = depth_contiguous ? depth_bytes : extent * kSize;
  static constexpr int kRowChunks = kRowBytes / 16;
  static constexpr int kBytes = extent * depth_bytes;
  static constexpr int kSwizzlePeriod = 8;  // rows
  static_assert(depth_bytes == 64 || depth_bytes == 128);
  static_assert(depth_contiguous || kRowChunks >= 8);

  __device__ static __forceinline__ int swizzle(int row) {
    if constexpr (depth_contiguous)
      return depth_bytes == 64 ? (row >> 1) & 3 : row & 7;  // 64-byte rows: two per 128 bytes
    else
      return kSize == 2 ? row & 7 : (row & 3) << 1;  // 32 bits: pairs of chunks at four depths
  }
  __device__ static __forceinline__ int offset(int row, int chunk) {
    return row * kRowBytes + ((chunk ^ swizzle(row)) << 4);
  }
};

/// The share of one thread in filling tiles, step after step: the chunk that it starts with and the
/// numbers left from there to the end of the matrix.
template <class T, class Tile, int threads>
struct LoadShare {
  static constexpr int kRowStep = threads / Tile::kRowChunks;
  static constexpr int kCount = Tile::kRows / kRowStep;
  static_assert(threads % Tile::kRowChunks == 0 && Tile::kRows % kRowStep == 0);
  static_assert(kRowStep % (Tile::kDepthContiguous ? Tile::kSwizzlePeriod : 4) == 0);

  const T* source;
  index_t ld;
  int slot;                  // where the first chunk lies in the tile
  int rows_left, cols_left;  // of memory, from the first number on

  __device__ LoadShare(const void* data, index_t ld_, int extent0, int extent, int depth0,
                       int depth)
      : ld(ld_) {
    const int row = static_cast<int>(threadIdx.x) / Tile::kRowChunks;
    const int chunk = static_cast<int>(threadIdx.x) % Tile::kRowChunks;
    const int row0 = (Tile::kDepthContiguous ? extent0 : depth0) + row;
    const int col0 = (Tile::kDepthContiguous ? depth0 : extent0) + chunk * Tile::kChunk;
    slot = Tile::offset(row, chunk);
    rows_left = (Tile::kDepthContiguous ? extent : depth) - row0;
    cols_left = (Tile::kDepthContiguous ? depth : extent) - col0;
    source = static_cast<const T*>(data) + row0 * ld + col0;
  }
  __device__ __forceinline__ void next_step() {
    if constexpr (Tile::kDepthContiguous) {
      source += Tile::kDepth;
      cols_left -= Tile::kDepth;
    } else {
      source += Tile::kDepth * ld;
      rows_left -= Tile::kDepth;
    }
  }
};

/// Loads of 16 bytes that run in the background from fetch() on.
template <class T, class Tile, int threads>
class AsyncLoader {
 public:
  using Share = LoadShare<T, Tile, threads>;
  __device__ AsyncLoader(const void* data, index_t ld, int extent0, int extent, int depth0,
                         int depth)
      : share_(data, ld, extent0, extent, depth0, depth) {}

  __device__ __forceinline__ void fetch(std::byte* tile) {
    const int bytes = max(0, min(share_.cols_left, Tile::kChunk)) * Tile::kSize;
#pragma unroll
    for (int i = 0; i < Share::kCount; ++i)
      ptx::cp_async_16(tile + share_.slot + i * Share::kRowStep * Tile::kRowBytes,
                       share_.source + i * Share::kRowStep * share_.ld,
                       i * Share::kRowStep < share_.rows_left ? bytes : 0);
    share_.next_step();
  }
  __device__ __forceinline__ void deposit(std::byte*) {}

 private:
  Share share_;
};

/// Any alignment: numbers one by one into registers by fetch(), from there by deposit(), with the
/// products of a step between them to hide the wait.
template <class T, class Tile, int threads>
class ScalarLoader {
 public:
  using Share = LoadShare<T, Tile, threads>;
  __device__ ScalarLoader(const void* data, index_t ld, int extent0, int extent, int depth0,
                          int depth)
      : share_(data, ld, extent0, extent, depth0, depth) {}

  __device__ __forceinline__ void fetch(std::byte*) {
#pragma unroll
    for (int i = 0; i < Share::kCount; ++i) {
      const T* source = share_.source + i * Share::kRowStep * share_.ld;
      const int left = i * Share::kRowStep < share_.rows_left ? share_.cols_left : 0;
#pragma unroll
      for (int j = 0; j < Tile::kChunk; ++j)
        held_[i].value[j] = j < left ? source[j] : from_float<T>(0.0F);
    }
    share_.next_step();
  }
  __device__ __forceinline__ void deposit(std::byte* tile) {
#pragma unroll
    for (int i = 0; i < Share::kCount; ++i)
      *reinterpret_cast<Pack<T, Tile::kChunk>*>(tile + share_.slot +
                                                i * Share::kRowStep * Tile::kRowBytes) = held_[i];
  }

 private:
  Share share_;
  Pack<T, Tile::kChunk> held_[Share::kCount];
};

/// The bits of x rounded to the 10-bit mantissa of tf32; the hardware would cut them off, always
/// towards zero. Infinity and NaN stay.
__device__ __forceinline__ std::uint32_t round_to_tf32(std::uint32_t bits) {
  return (bits & 0x7f800000U) == 0x7f800000U ? bits : bits + 0x1000U;
}

/// Fragment registers of the block of 16 indices from `extent0` on, at depth `part` * 32 bytes of
/// the tile. For A, r[0], r[1] are the halves of the 16 rows at the first half of the depth, r[2],
/// r[3] at the second; for B, r[0], r[1] are both halves of the depth for the first 8 columns,
/// r[2], r[3] for the others.
template <class T, class Tile, bool is_a>
__device__ __forceinline__ void load_fragment(std::uint32_t (&r)[4], const std::byte* tile,
                                              int extent0, int part) {
  const int lane = static_cast<int>(threadIdx.x) & 31;
  // Lanes 8i .. 8i+7 name the rows of the matrix that becomes r[i].
  constexpr bool kRowsFirst = is_a == Tile::kDepthContiguous;
  const int row = kRowsFirst ? lane & 15 : (lane & 7) + (lane >> 4 << 3);
  const int half = kRowsFirst ? lane >> 4 : lane >> 3 & 1;
  if constexpr (Tile::kDepthContiguous) {
    const int chunk = (2 * part + half) ^ Tile::swizzle(row);
    ptx::ldmatrix_x4(r, tile + (extent0 + row) * Tile::kRowBytes + (chunk << 4));
  } else if constexpr (Tile::kSize == 2) {
    const int chunk = (extent0 / Tile::kChunk + half) ^ Tile::swizzle(row);
    ptx::ldmatrix_x4_trans(r, tile + (16 * part + row) * Tile::kRowBytes + (chunk << 4));
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int extent = extent0 + (lane >> 2) + 8 * (is_a ? i & 1 : i >> 1);
      const int depth = 8 * part + (lane & 3) + 4 * (is_a ? i >> 1 : i & 1);
      const int chunk = (extent >> 2) ^ Tile::swizzle(lane & 3);
      r[i] = *reinterpret_cast<const std::uint32_t*>(tile + depth * Tile::kRowBytes + (chunk << 4) +
                                                     4 * (extent & 3));
    }
  }
  if constexpr (Tile::kSize == 4) {
#pragma unroll
    for (int i = 0; i < 4; ++i) r[i] = round_to_tf32(r[i]);
  }
}

}  // namespace t3d::cuda
