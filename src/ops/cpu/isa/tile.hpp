// Small matrix products for attention tiles: C (+)= A B with C in registers. A is broadcast element
// by element (any strides, so transposes are free), B is read as vectors. All tiles sit in L1/L2.
#pragma once
#include <cstddef>
#include <utility>

#include "ops/cpu/isa/numbers.hpp"

namespace t3d::cpu::T3D_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16, kTileVectors = 4;
#elif defined(__AVX__)
constexpr int kLanes = 8, kTileVectors = 2;
#else
constexpr int kLanes = 4, kTileVectors = 2;
#endif
constexpr int kTileRows = 6;  // rows x vectors fill the register file

typedef float Vec __attribute__((vector_size(4 * kLanes)));

inline Vec load(const float* from) {
  Vec v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}
inline void store(const Vec& v, float* to) { __builtin_memcpy(to, &v, sizeof v); }

typedef std::uint32_t Words __attribute__((vector_size(4 * kLanes)));
typedef std::uint16_t HalfWords __attribute__((vector_size(2 * kLanes)));

inline Vec load(const bf16* from) {
  HalfWords half;
  __builtin_memcpy(&half, from, sizeof half);
  return __builtin_bit_cast(Vec, __builtin_convertvector(half, Words) << 16);
}
/// Rounds as narrow() does.
inline void store(const Vec& v, bf16* to) {
  const auto word = __builtin_bit_cast(Words, v);
  const Words even = (word + 0x7fffU + ((word >> 16) & 1U)) >> 16, nan = (word >> 16) | 0x40U;
  const Words rounded = (word & 0x7fffffffU) > 0x7f800000U ? nan : even;
  const auto half = __builtin_convertvector(rounded, HalfWords);
  __builtin_memcpy(&to->bits, &half, sizeof half);
}

inline Vec larger(const Vec& a, const Vec& b) { return a > b ? a : b; }

template <int By, class V, int... Lane>
inline V rotated(const V& v, std::integer_sequence<int, Lane...>) {
  return __builtin_shufflevector(v, v, ((Lane + By) % static_cast<int>(sizeof...(Lane)))...);
}

/// The largest lane, by halves.
template <int Width = kLanes / 2>
inline float largest_lane(const Vec& v) {
  if constexpr (Width == 0)
    return v[0];
  else
    return largest_lane<Width / 2>(
        larger(v, rotated<Width>(v, std::make_integer_sequence<int, kLanes>{})));
}

/// The largest of n values and `top`; explicit lanes, because compilers do not reorder comparisons
/// that a NaN could reach. A NaN may or may not win: it reaches the sums of exponentials anyway.
template <class T>
inline float largest(const T* x, index_t n, float top) {
  constexpr int kChains = 4;
  index_t i = 0;
  if (n >= kChains * kLanes) {
    Vec max[kChains];
    for (int v = 0; v < kChains; ++v) max[v] = Vec{} + top;
    for (; i + kChains * kLanes <= n; i += kChains * kLanes)
#pragma GCC unroll 4
      for (int v = 0; v < kChains; ++v) max[v] = larger(load(x + i + v * kLanes), max[v]);
    top = largest_lane(larger(larger(max[0], max[1]), larger(max[2], max[3])));
  }
  for (; i < n; ++i) {
    const float value = widen(x[i]);
    top = top > value ? top : value;
  }
  return top;
}

/// Element (m, k) is data[m * row + k * col].
struct TileA {
  const float* data;
  index_t row, col;
};

template <int Rows, int Vectors>
inline void tile_block(const TileA& a, const float* b, index_t ldb, index_t depth, bool accumulate,
                       float* c, index_t ldc) {
  Vec sum[static_cast<std::size_t>(Rows)][static_cast<std::size_t>(Vectors)];
#pragma GCC unroll 8
  for (int m = 0; m < Rows; ++m)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      sum[m][v] = accumulate ? load(c + m * ldc + v * kLanes) : Vec{};
  for (index_t k = 0; k < depth; ++k) {
    Vec right[static_cast<std::size_t>(Vectors)];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) right[v] = load(b + k * ldb + v * kLanes);
#pragma GCC unroll 8
    for (int m = 0; m < Rows; ++m) {
      const float left = a.data[m * a.row + k * a.col];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sum[m][v] += left * right[v];
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < Rows; ++m)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) store(sum[m][v], c + m * ldc + v * kLanes);
}

template <int Vectors>
inline void tile_panel(const TileA& a, const float* b, index_t ldb, index_t rows, index_t depth,
                       bool accumulate, float* c, index_t ldc) {
  index_t m = 0;
  const auto at = [&](index_t row) { return TileA{a.data + row * a.row, a.row, a.col}; };
  for (; m + kTileRows <= rows; m += kTileRows)
    tile_block<kTileRows, Vectors>(at(m), b, ldb, depth, accumulate, c + m * ldc, ldc);
  if (m + 4 <= rows) {
    tile_block<4, Vectors>(at(m), b, ldb, depth, accumulate, c + m * ldc, ldc);
    m += 4;
  }
  for (; m < rows; ++m) tile_block<1, Vectors>(at(m), b, ldb, depth, accumulate, c + m * ldc, ldc);
}

/// C[rows, cols] (+)= A[rows, depth] B[depth, cols]; cols is a multiple of kLanes.
inline void tile_gemm(const TileA& a, const float* b, index_t ldb, index_t rows, index_t cols,
                      index_t depth, bool accumulate, float* c, index_t ldc) {
  index_t n = 0;
  for (; n + kTileVectors * kLanes <= cols; n += kTileVectors * kLanes)
    tile_panel<kTileVectors>(a, b + n, ldb, rows, depth, accumulate, c + n, ldc);
  for (; n < cols; n += kLanes) tile_panel<1>(a, b + n, ldb, rows, depth, accumulate, c + n, ldc);
}

}  // namespace
}  // namespace t3d::cpu::T3D_ISA
