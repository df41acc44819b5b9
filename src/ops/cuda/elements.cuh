// Passes over matrices element by element: what the memory-bound verbs share.
//
// Elements<T, N> are N neighbours of one row in registers, moved in packs of 16 bytes (N = 1: one
// number, for any alignment). `each_element` runs an operation over a matrix, `down_rows` over some
// rows of a thread's columns: a thread first loads several items and only then computes and stores,
// so that enough bytes are in flight to hide the latency of memory (about 25 KB per multiprocessor
// at the H200's 4.8 TB/s and 700 ns).
#pragma once
#include <algorithm>
#include <bit>
#include <initializer_list>
#include <type_traits>

#include "device/tensor_view.hpp"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/numbers.cuh"
#include "ops/cuda/reduce.cuh"

namespace t3d::cuda {

/// Two 16-bit numbers share a 32-bit word: were they numbers of their own, the compiler would take
/// a pack apart as soon as it arrives, and with that wait for it before it asks for the next one.
template <class T, int N>
struct Elements {
  static constexpr bool kPaired = sizeof(T) == 2 && N > 1;
  using Word = std::conditional_t<kPaired, std::uint32_t, T>;
  static constexpr int kPerWord = kPaired ? 2 : 1;
  static constexpr int kWords = N / kPerWord;
  static constexpr int kPart = kWords < kPack<Word> ? kWords : kPack<Word>;
  Word word[kWords];

  __device__ __forceinline__ void load(const T* from) {
#pragma unroll
    for (int p = 0; p < kWords; p += kPart) {
      const auto part = *reinterpret_cast<const Pack<Word, kPart>*>(from + p * kPerWord);
#pragma unroll
      for (int i = 0; i < kPart; ++i) word[p + i] = part.value[i];
    }
  }
  __device__ __forceinline__ void store(T* to) const {
#pragma unroll
    for (int p = 0; p < kWords; p += kPart) {
      Pack<Word, kPart> part;
#pragma unroll
      for (int i = 0; i < kPart; ++i) part.value[i] = word[p + i];
      *reinterpret_cast<Pack<Word, kPart>*>(to + p * kPerWord) = part;
    }
  }
  /// Only the first `valid` (0..N) numbers; load() makes the others 0.
  __device__ __forceinline__ void load(const T* from, int valid) {
    if (valid == N) return load(from);
    clear();
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (i >= valid) continue;
      if constexpr (kPaired)
        word[i / 2] |= std::uint32_t{std::bit_cast<std::uint16_t>(from[i])} << (16 * (i % 2));
      else
        word[i] = from[i];
    }
  }
  __device__ __forceinline__ void store(T* to, int valid) const {
    if (valid == N) return store(to);
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (i < valid) to[i] = number(i);
  }
  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < kWords; ++i) word[i] = Word{};
  }
  [[nodiscard]] __device__ __forceinline__ T number(int i) const {
    if constexpr (kPaired)
      return std::bit_cast<T>(static_cast<std::uint16_t>(word[i / 2] >> (16 * (i % 2))));
    else
      return word[i];
  }
  [[nodiscard]] __device__ __forceinline__ float operator[](int i) const {
    if constexpr (kPaired && std::is_same_v<T, Bf16>)  // one instruction instead of two
      return __uint_as_float(i % 2 == 0 ? word[i / 2] << 16 : word[i / 2] & 0xffff0000U);
    else
      return to_float(number(i));
  }
  __device__ __forceinline__ void assign(const float (&x)[N]) {
#pragma unroll
    for (int i = 0; i < kWords; ++i)
      if constexpr (kPaired)
        word[i] = pack_pair<T>(x[2 * i], x[2 * i + 1]);
      else
        word[i] = from_float<T>(x[i]);
  }
};

/// How many of N elements from column `col` on lie in a row of `cols`.
template <int N, class Index>
__device__ __forceinline__ int valid_of(Index cols, Index col) {
  const Index left = cols - col;
  return left >= N ? N : left > 0 ? static_cast<int>(left) : 0;
}

/// Where a matrix of one operand lies.
template <class T>
struct Matrix {
  T* data;
  index_t ld;
  [[nodiscard]] __device__ __forceinline__ T* at(index_t row, index_t col) const {
    return data + row * ld + col;
  }
};
template <class T, class Void>
[[nodiscard]] auto matrix_of(const BasicView<Void>& view) {
  auto* data = view.template as<T>();
  return Matrix<std::remove_pointer_t<decltype(data)>>{data, view.ld};
}

/// Whether packs of `n` elements (16 bytes at most) may be used in every row of the view.
[[nodiscard]] inline bool fits_packs(const ConstTensorView& view, index_t n) {
  const index_t bytes = std::min<index_t>(16, n * size_of(view.dtype));
  return reinterpret_cast<std::uintptr_t>(view.data) % static_cast<std::uintptr_t>(bytes) == 0 &&
         (view.rows <= 1 || view.ld * size_of(view.dtype) % bytes == 0);
}
[[nodiscard]] inline bool fit_packs(std::initializer_list<ConstTensorView> views, index_t n) {
  return std::all_of(views.begin(), views.end(),
                     [n](const ConstTensorView& view) { return fits_packs(view, n); });
}

/// The same where rows consist of whole packs, so that kernels need not look after a rest.
[[nodiscard]] inline bool fit_whole_packs(std::initializer_list<ConstTensorView> views,
                                          index_t cols, index_t n) {
  return cols % n == 0 && fit_packs(views, n);
}

/// Contiguous operands of one shape as one long row.
template <class... Views>
void flatten(Views&... views) {
  if ((views.contiguous() && ...)) ((views = views.flat()), ...);
}

inline constexpr int kElementThreads = 256;
inline constexpr int kElementWarps = kElementThreads / kWarp;

/// Rows first, first + step, .. below `end`: load(item, row) for kBatch of them, then finish(item,
/// row) for each.
template <int kBatch, class Item, class Load, class Finish>
__device__ __forceinline__ void down_rows(index_t first, index_t end, index_t step,
                                          const Load& load, const Finish& finish) {
  index_t row = first;
  for (; row + (kBatch - 1) * step < end; row += kBatch * step) {
    Item item[kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) load(item[b], row + b * step);
#pragma unroll
    for (int b = 0; b < kBatch; ++b) finish(item[b], row + b * step);
  }
#pragma unroll 1
  for (; row < end; row += step) {
    Item item;
    load(item, row);
    finish(item, row);
  }
}

/// Op is a struct with
///   kWidth: N of the aligned case;  kItems: items in flight per thread;
///   template <int N> struct Item: what load() leaves for finish();
///   template <int N> void load(Item<N>&, row, col, valid), finish(Item<N>&, row, col, valid).
/// `along`: a block's items lie along one row (long rows); else one below the other, a warp's 32
/// beside each other.
template <int N, class Op>
__global__ void __launch_bounds__(kElementThreads, 3)
    each_element(Op op, index_t rows, index_t cols, bool along) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  constexpr index_t kStep = kElementWarps * kWarp * N;
  const index_t col_step = along ? kStep : 0, row_step = along ? 0 : kElementWarps;
  const index_t tile_rows = along ? 1 : kElementWarps * Op::kItems;
  const index_t first_col = along ? blockIdx.x * kStep * Op::kItems + (warp * kWarp + lane) * N
                                  : (blockIdx.x * index_t{kWarp} + lane) * N;
  for (index_t tile = blockIdx.y * tile_rows; tile < rows; tile += gridDim.y * tile_rows) {
    const index_t first_row = tile + (along ? 0 : warp);
    if (first_row + (Op::kItems - 1) * row_step < rows &&
        first_col + (Op::kItems - 1) * col_step + N <= cols) {
      typename Op::template Item<N> item[Op::kItems];
#pragma unroll
      for (int i = 0; i < Op::kItems; ++i)
        op.template load<N>(item[i], first_row + i * row_step, first_col + i * col_step, N);
#pragma unroll
      for (int i = 0; i < Op::kItems; ++i)
        op.template finish<N>(item[i], first_row + i * row_step, first_col + i * col_step, N);
      continue;
    }
#pragma unroll 1
    for (int i = 0; i < Op::kItems; ++i) {  // the matrix ends within this thread's items
      const index_t row = first_row + i * row_step, col = first_col + i * col_step;
      const int valid = row < rows ? valid_of<N>(cols, col) : 0;
      if (valid == 0) continue;
      typename Op::template Item<N> item;
      op.template load<N>(item, row, col, valid);
      op.template finish<N>(item, row, col, valid);
    }
  }
}

/// Runs Op over a matrix [rows, cols]; `packs`: operands allow packs of Op::kWidth elements.
template <class Op>
void for_each_element(Queue& queue, const Op& op, index_t rows, index_t cols, bool packs) {
  constexpr index_t kMaxBlocksY = 65535;
  const index_t width = packs ? Op::kWidth : 1;
  const index_t long_row = kElementThreads * width * Op::kItems;
  const bool along = rows == 1 || cols >= long_row;
  LaunchShape shape;
  shape.threads = kElementThreads;
  shape.blocks_x = blocks_for(cols, along ? long_row : kWarp * width);
  shape.blocks_y =
      std::min(kMaxBlocksY, along ? rows : blocks_for(rows, kElementWarps * Op::kItems));
  if (packs)
    launch(queue, shape, each_element<Op::kWidth, Op>, op, rows, cols, along);
  else
    launch(queue, shape, each_element<1, Op>, op, rows, cols, along);
}

}  // namespace t3d::cuda
