// Pieces of flash attention on tensor cores: tiles of 16-bit numbers in shared memory, mma
// fragments of them, and the products that both passes are made of.
//
// A warp owns 16 * kBands rows: a fragment of the other side, once read from shared memory, serves
// all bands. With one band reading is what limits (512 bytes feed two mma, 128 bytes come per
// clock), with two it is not.
//
// A tile's 16-byte chunks are permuted within each row by the row's number (chunk ^ row % 8), so
// that the eight rows that one ldmatrix reads lie in different banks. All fragments begin at a row
// that is a multiple of 8: what the permutation does is then fixed by the lane, and the place of a
// fragment is (the lane's offset ^ column) + a constant.
#pragma once
#include "ops/cuda/attention_problem.cuh"
#include "ops/cuda/ptx.cuh"
#include "ops/cuda/reduce.cuh"

namespace t3d::cuda {

__device__ __forceinline__ int lane_number() { return static_cast<int>(threadIdx.x) % kWarp; }

/// kSize: columns that take part (a multiple of 16, at most 128): the head's size rounded up; those
/// behind the head are zero. Places in shared memory are counted in bytes.
template <class T, int kSize>
struct Tile {
  static constexpr int kPitch = kSize <= 64 ? 64 : 128, kChunks = kPitch / 8;  // numbers, chunks
  static constexpr int kRowBytes = kPitch * 2;
  static_assert(sizeof(T) == 2);
  int start;      // a multiple of 128; known to the compiler
  int moved = 0;  // the same, where it depends on the step of a loop

  static constexpr int bytes(int rows) { return rows * kRowBytes; }
  __device__ __forceinline__ T* at(int place) const {
    return reinterpret_cast<T*>(ptx::shared_memory<unsigned char>() + moved + place + start);
  }
  __device__ __forceinline__ T* chunk(int row, int number) const {
    return at(row * kRowBytes + (number ^ (row & 7)) * 16);
  }

  /// Where this thread reads its chunk of the first rows from row0 on (for `fetch`).
  static __device__ __forceinline__ const T* source_of(const Heads<const T>& from, index_t row0,
                                                       int head, int size) {
    const int row = static_cast<int>(threadIdx.x) / kChunks;
    return from.at(row0 + row, head, size) + static_cast<int>(threadIdx.x) % kChunks * 8;
  }
  /// Starts copying kRows rows of a head, `ld` apart; zeros from `valid` rows on.
  template <int kThreads, int kRows>
  __device__ __forceinline__ void fetch(const T* source, index_t ld, int valid, int size) const {
    constexpr int kStep = kThreads / kChunks;  // rows at once
    static_assert(kStep % 8 == 0 && kRows % kStep == 0);
    const int row = static_cast<int>(threadIdx.x) / kChunks;
    const int number = static_cast<int>(threadIdx.x) % kChunks;
    if (number * 8 >= kSize) return;
    T* to = chunk(row, number);
    const bool column = number * 8 < size;  // a head is whole chunks
    if (column && valid >= kRows) {
#pragma unroll
      for (int r = 0; r < kRows; r += kStep) ptx::cp_async_16(to + r * kPitch, source + r * ld);
    } else {
#pragma unroll 1
      for (int r = 0; r < kRows; r += kStep)  // where nothing is read, `source` may be outside
        ptx::cp_async_16(to + r * kPitch, source + r * ld, column && row + r < valid ? 16 : 0);
    }
  }
  /// A: 16 rows from `row`, 16 columns from `col`.
  __device__ __forceinline__ void load_a(std::uint32_t (&a)[4], int row, int col) const {
    ptx::ldmatrix_x4(a, fragment(by_rows() + row * kRowBytes, 0, col));
  }
  /// B = tile transposed: 16 columns of B are rows of the tile from `row`; depth from `col`.
  __device__ __forceinline__ void load_b(std::uint32_t (&b)[4], int row, int col) const {
    const int lane = lane_number(), in_tile = lane / 16 * 8 + lane % 8;
    const int place = in_tile * kRowBytes + ((lane / 8 % 2) ^ (lane & 7)) * 16;
    ptx::ldmatrix_x4(b, fragment(place, row, col));
  }
  /// B = tile: depth is rows of the tile from `row`; 16 columns from `col`.
  __device__ __forceinline__ void load_b_rows(std::uint32_t (&b)[4], int row, int col) const {
    ptx::ldmatrix_x4_trans(b, fragment(by_rows(), row, col));
  }

 private:
  /// Chunks are permuted in groups of eight: what is beyond a group, and the row, stay outside.
  /// `moved` goes inside, which changes nothing, but keeps the compiler from holding all four
  /// results in registers over the main loop, where they are scarce.
  __device__ __forceinline__ const T* fragment(int place, int row, int col) const {
    const int inside = (moved + place) ^ col % 64 * 2;
    return reinterpret_cast<const T*>(ptx::shared_memory<unsigned char>() + inside +
                                      (start + row * kRowBytes + col / 64 * 128));
  }
  static __device__ __forceinline__ int by_rows() {
    const int lane = lane_number();
    return lane % 16 * kRowBytes + ((lane / 16) ^ (lane & 7)) * 16;
  }
};

/// A fragments of the warp's rows: read from the tile whenever needed, or once where they fit into
/// registers (kKept).
template <class T, int kSize, int kBands, bool kKept>
struct WarpRows {
  Tile<T, kSize> tile;
  int row;
  std::uint32_t kept[kKept ? kSize / 16 : 1][kBands][4];

  __device__ __forceinline__ WarpRows(const Tile<T, kSize>& from, int first)
      : tile(from), row(first) {}
  __device__ __forceinline__ void keep() {
    if constexpr (kKept) {
#pragma unroll
      for (int step = 0; step < kSize / 16; ++step)
#pragma unroll
        for (int band = 0; band < kBands; ++band)
          tile.load_a(kept[step][band], row + 16 * band, 16 * step);
    }
  }
  __device__ __forceinline__ void load(std::uint32_t (&a)[kBands][4], int col) const {
#pragma unroll
    for (int band = 0; band < kBands; ++band) {
      if constexpr (kKept) {
#pragma unroll
        for (int i = 0; i < 4; ++i) a[band][i] = kept[col / 16][band][i];
      } else {
        tile.load_a(a[band], row + 16 * band, col);
      }
    }
  }
};

/// Sums of one warp: 16 * kBands rows, 8 * kBlocks columns, as mma leaves them.
template <int kBands, int kBlocks>
struct WarpSums {
  float value[kBands][kBlocks][4];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int band = 0; band < kBands; ++band)
#pragma unroll
      for (int n = 0; n < kBlocks; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) value[band][n][i] = 0;
  }
  template <class T>
  __device__ __forceinline__ void add_product(int block, const std::uint32_t (&a)[kBands][4],
                                              const std::uint32_t (&b)[4]) {
    const std::uint32_t low[2] = {b[0], b[1]}, high[2] = {b[2], b[3]};
#pragma unroll
    for (int band = 0; band < kBands; ++band) {
      ptx::mma_m16n8k16<T>(value[band][block], a[band], low);
      ptx::mma_m16n8k16<T>(value[band][block + 1], a[band], high);
    }
  }
};

/// scores = the warp's rows times tile transposed.
template <class T, int kSize, int kBands, bool kKept, int kBlocks>
__device__ __forceinline__ void multiply_scores(WarpSums<kBands, kBlocks>& scores,
                                                const WarpRows<T, kSize, kBands, kKept>& rows,
                                                const Tile<T, kSize>& tile) {
  scores.clear();
#pragma unroll
  for (int col = 0; col < kSize; col += 16) {
    std::uint32_t a[kBands][4];
    rows.load(a, col);
#pragma unroll
    for (int n = 0; n < kBlocks; n += 2) {
      std::uint32_t b[4];
      tile.load_b(b, n * 8, col);
      scores.template add_product<T>(n, a, b);
    }
  }
}

/// sums += weights times tile. The weights are rounded to T: as sums of one product they already
/// lie as the next one's A fragments.
template <class T, int kSize, int kBands, int kBlocks>
__device__ __forceinline__ void add_weighted(WarpSums<kBands, kSize / 8>& sums,
                                             const WarpSums<kBands, kBlocks>& weights,
                                             const Tile<T, kSize>& tile) {
#pragma unroll
  for (int n = 0; n < kBlocks; n += 2) {
    std::uint32_t a[kBands][4];
#pragma unroll
    for (int band = 0; band < kBands; ++band)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float(&w)[4] = weights.value[band][n + i / 2];
        a[band][i] = pack_pair<T>(w[i % 2 * 2], w[i % 2 * 2 + 1]);
      }
#pragma unroll
    for (int col = 0; col < kSize; col += 16) {
      std::uint32_t b[4];
      tile.load_b_rows(b, n * 8, col);
      sums.template add_product<T>(col / 8, a, b);
    }
  }
}

/// Scores that must not count become -infinity. row, col: global numbers of this lane's first row
/// and column. Rows are queries, or (for_keys) keys; then only the causal mask is applied.
template <bool for_keys, int kBands, int kBlocks>
__device__ __forceinline__ void mask(WarpSums<kBands, kBlocks>& scores, int row, int col,
                                     int length, bool causal) {
#pragma unroll
  for (int band = 0; band < kBands; ++band)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int own = row + 16 * band + i / 2 * 8;
      const int last = causal ? min(own, length - 1) : length - 1;
#pragma unroll
      for (int n = 0; n < kBlocks; ++n) {
        const int other = col + 8 * n + i % 2;
        if (for_keys ? other < own : other > last) scores.value[band][n][i] = -INFINITY;
      }
    }
}

/// Rounds the warp's sums (times the factor of each thread's rows) and writes them to a head:
/// through `stage`, the warp's own rows of shared memory, so that whole chunks go out. `valid`: the
/// rows that exist.
template <class T, int kSize, int kBands>
__device__ __forceinline__ void store_sums(const WarpSums<kBands, kSize / 8>& sums,
                                           const float (&factor)[kBands][2],
                                           const Tile<T, kSize>& stage, int stage_row,
                                           const Heads<T>& to, index_t row0, int head, int valid,
                                           int size, bool wide) {
  const int lane = lane_number(), g = lane / 4, t = lane % 4;
  __syncwarp();
#pragma unroll
  for (int band = 0; band < kBands; ++band)
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int n = 0; n < kSize / 8; ++n) {
        const float(&sum)[4] = sums.value[band][n];
        const float times = factor[band][half];
        *reinterpret_cast<std::uint32_t*>(stage.chunk(stage_row + 16 * band + 8 * half + g, n) +
                                          2 * t) =
            pack_pair<T>(sum[2 * half] * times, sum[2 * half + 1] * times);
      }
  __syncwarp();
  constexpr int kChunks = Tile<T, kSize>::kChunks;
  const int chunks = size / 8, rows = min(valid, 16 * kBands);
  for (int i = lane; i < rows * kChunks; i += kWarp) {
    const int r = i / kChunks, c = i % kChunks;
    if (c >= chunks) continue;
    const T* from = stage.chunk(stage_row + r, c);
    T* out = to.at(row0 + r, head, size) + c * 8;
    if (wide)
      *reinterpret_cast<Pack<T, 8>*>(out) = *reinterpret_cast<const Pack<T, 8>*>(from);
    else
      for (int j = 0; j < 8; ++j) out[j] = from[j];
  }
}

/// Calls fn with the instance for a head size: the smallest kSize that holds it.
template <class Fn>
void with_head_size(index_t size, Fn&& fn) {
  if (size <= 64) return fn(std::integral_constant<int, 64>{});
  if (size <= 96) return fn(std::integral_constant<int, 96>{});
  fn(std::integral_constant<int, 128>{});
}

}  // namespace t3d::cuda
