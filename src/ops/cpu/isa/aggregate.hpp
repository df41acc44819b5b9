// Dot products of all pairs of a few vectors, and linear combinations of them. Exact: see
// ops/cpu/update_kernels.hpp. Dots are taken in fp64, whose range holds the squares of every fp32
// number, in kDotLanes sums; narrower vectors pass over a block several times, for some of them.
// Blocks of columns are widened once into the workspace; from there tiles of kSide x kSide pairs
// keep their sums in registers while their rows pass through, and the next block's columns are
// fetched.
#pragma once
#include "ops/cpu/isa/wide.hpp"

namespace t3d::cpu::T3D_ISA {
namespace {

constexpr int kDotLanes = 8, kPasses = kDotLanes / kWideLanes;
#if defined(__AVX512F__)
constexpr int kSide = 4;  // side^2 + side + 1 fill the register file
#else
constexpr int kSide = 3;
#endif
// Columns of a block, few enough that memory keeps busy while tiles are at work; rows are not a
// power of two apart, as those would share cache lines.
constexpr index_t kBlock = 128, kBlockLd = kBlock + 16;

/// The sum of all lanes, by halves.
template <int Width = kWideLanes / 2>
inline double sum_of_lanes(const Wide& v) {
  if constexpr (Width == 0)
    return v[0];
  else
    return sum_of_lanes<Width / 2>(
        v + rotated<Width>(v, std::make_integer_sequence<int, kWideLanes>{}));
}

/// Some columns of n vectors [n, kBlockLd], and the packed upper triangle of their dots.
struct DotBlock {
  const double* rows;
  index_t n, columns;  // a multiple of kDotLanes
  double* packed;
  // The columns that follow, as they are in memory; strides in bytes. They need not exist.
  const char* next;
  index_t next_row, next_col;
};

template <int Rows, int Cols>
struct DotSums {
  Wide of[static_cast<std::size_t>(Rows)][static_cast<std::size_t>(Cols)];
};

/// Of the columns of a block, every kDotLanes-th vector from `first` on.
template <int Rows, int Cols, bool Diagonal>
void dot_pass(const DotBlock& block, index_t i, index_t j, index_t first,
              DotSums<Rows, Cols>& sums) {
  Wide sum[static_cast<std::size_t>(Rows)][static_cast<std::size_t>(Cols)];
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < Cols; ++c) sum[r][c] = Wide{};
  const double *a = block.rows + i * kBlockLd, *b = block.rows + j * kBlockLd;
  for (index_t col = first; col < block.columns; col += kDotLanes) {
    Wide right[static_cast<std::size_t>(Cols)];
#pragma GCC unroll 4
    for (int c = 0; c < Cols; ++c) {
      right[c] = load_wide(b + c * kBlockLd + col);
      if (Diagonal)
        __builtin_prefetch(block.next + (j + c) * block.next_row + col * block.next_col);
    }
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      const Wide left = Diagonal ? right[r] : load_wide(a + r * kBlockLd + col);
#pragma GCC unroll 4
      for (int c = Diagonal ? r : 0; c < Cols; ++c) sum[r][c] += left * right[c];
    }
  }
  __builtin_memcpy(&sums.of, sum, sizeof sum);
}

/// Adds dots of rows i.. with rows j..; on the diagonal (i = j) only the upper triangle.
template <int Rows, int Cols, bool Diagonal>
void dot_tile(const DotBlock& block, index_t i, index_t j) {
  DotSums<Rows, Cols> sums[static_cast<std::size_t>(kPasses)];
  for (int pass = 0; pass < kPasses; ++pass)
    dot_pass<Rows, Cols, Diagonal>(block, i, j, index_t{pass} * kWideLanes, sums[pass]);
  for (int half = kPasses / 2; half > 0; half /= 2)
    for (int pass = 0; pass < half; ++pass)
      for (int r = 0; r < Rows; ++r)
        for (int c = Diagonal ? r : 0; c < Cols; ++c)
          sums[pass].of[r][c] += sums[pass + half].of[r][c];
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) {
    const index_t row = i + r;
    double* to = block.packed + row * block.n - row * (row + 1) / 2 + j;
#pragma GCC unroll 4
    for (int c = Diagonal ? r : 0; c < Cols; ++c) to[c] += sum_of_lanes(sums[0].of[r][c]);
  }
}

/// The tile at (i, j), narrower where the vectors end.
template <int Cols>
void dot_tile_at(const DotBlock& block, index_t i, index_t j) {
  if constexpr (Cols > 1)
    if (block.n - j < Cols) return dot_tile_at<Cols - 1>(block, i, j);
  if (i == j)
    dot_tile<Cols, Cols, true>(block, i, j);
  else
    dot_tile<kSide, Cols, false>(block, i, j);
}

inline index_t gram_workspace(index_t n) {
  return n * kBlockLd * static_cast<index_t>(sizeof(double) / sizeof(float));
}

/// `count` numbers and zeros up to `whole`.
template <class T>
void widen_row(const T* __restrict from, index_t count, index_t whole, double* __restrict to) {
  for (index_t c = 0; c < count; ++c) to[c] = static_cast<double>(widen(from[c]));
  for (index_t c = count; c < whole; ++c) to[c] = 0;
}

template <class T>
void gram(const T* x, index_t ld, index_t n, index_t columns, double* packed, float* workspace) {
  constexpr auto kSize = static_cast<index_t>(sizeof(T));
  auto* rows = reinterpret_cast<double*>(workspace);
  for (index_t from = 0; from < columns; from += kBlock) {
    const index_t count = columns - from < kBlock ? columns - from : kBlock;
    const index_t whole = (count + kDotLanes - 1) / kDotLanes * kDotLanes;
    for (index_t i = 0; i < n; ++i) widen_row(x + i * ld + from, count, whole, rows + i * kBlockLd);
    const char* next = reinterpret_cast<const char*>(x + from + kBlock);
    const DotBlock block{rows, n, whole, packed, next, ld * kSize, kSize};
    for (index_t i = 0; i < n; i += kSide)
      for (index_t j = i; j < n; j += kSide) dot_tile_at<kSide>(block, i, j);
  }
}

template <class T, class Out>
void combine(const T* const* rows, const double* factors, index_t count, index_t begin, Out* out,
             index_t columns) {
  constexpr index_t kColumns = 1024;
  for (index_t col = 0; col < columns; col += kColumns) {
    const index_t here = columns - col < kColumns ? columns - col : kColumns;
    double sum[kColumns] = {};
    for (index_t i = 0; i < count; ++i) {
      const T* __restrict row = rows[i] + begin + col;
      const double factor = factors[i];
      if (here == kColumns)
        for (index_t c = 0; c < kColumns; ++c)
          sum[c] += factor * static_cast<double>(widen(row[c]));
      else
        for (index_t c = 0; c < here; ++c) sum[c] += factor * static_cast<double>(widen(row[c]));
    }
    for (index_t c = 0; c < here; ++c) narrow(static_cast<float>(sum[c]), out[col + c]);
  }
}

}  // namespace
}  // namespace t3d::cpu::T3D_ISA
