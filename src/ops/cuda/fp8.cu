// Kernels of fp8.cuh: two for the scale (a partial maximum per block, then one block for all), one
// that rounds and keeps the order, one that transposes through shared memory because the fp8 units
// of Hopper want K contiguous in both operands. Each is one pass over memory; not measured.
#include <cuda_fp8.h>

#include <algorithm>
#include <bit>

#include "ops/cuda/fp8.cuh"
#include "ops/cuda/gemm_plan.hpp"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/numbers.cuh"

namespace t3d::cuda {
namespace {

constexpr int kThreads = 256;
constexpr index_t kMaxPartials = 512;
constexpr int kWidth = 8;  // 16-bit numbers in 16 bytes
constexpr float kLargest = 448.0F;

/// Eight neighbours from column `col` on; 0 behind the end of the row.
template <class T>
__device__ __forceinline__ void load_eight(float (&x)[kWidth], const T* row, int col, int cols,
                                           bool vector) {
  if (vector && col + kWidth <= cols) {
    const auto pack = *reinterpret_cast<const Pack<T, kWidth>*>(row + col);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) x[j] = to_float(pack.value[j]);
    return;
  }
#pragma unroll
  for (int j = 0; j < kWidth; ++j) x[j] = col + j < cols ? to_float(row[col + j]) : 0.0F;
}

/// The largest of one number per thread, in thread 0.
__device__ __forceinline__ float block_max(float x) {
  __shared__ float shared[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  shared[thread] = x;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) shared[thread] = fmaxf(shared[thread], shared[thread + half]);
  }
  return shared[0];
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    partial_maxima(const T* x, index_t rows, int cols, index_t ld, bool vector, float* partial) {
  const index_t packs = (cols + kWidth - 1) / kWidth;
  float most = 0;
  for (index_t i = static_cast<index_t>(blockIdx.x) * kThreads + threadIdx.x; i < rows * packs;
       i += static_cast<index_t>(gridDim.x) * kThreads) {
    float eight[kWidth];
    load_eight(eight, x + i / packs * ld, static_cast<int>(i % packs) * kWidth, cols, vector);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) most = fmaxf(most, fabsf(eight[j]));
  }
  most = block_max(most);
  if (threadIdx.x == 0) partial[blockIdx.x] = most;
}

__global__ void __launch_bounds__(kThreads)
    choose_scale(const float* partial, int count, float* scale) {
  float most = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads)
    most = fmaxf(most, partial[i]);
  most = block_max(most);
  if (threadIdx.x != 0) return;
  // The power of two below 448 / most; within what has a reciprocal.
  const float room = most > 0 ? fminf(kLargest / most, 0x1p100F) : 1.0F;
  const float factor = std::bit_cast<float>(std::bit_cast<std::uint32_t>(room) & 0x7f800000U);
  scale[0] = factor;
  scale[1] = factor > 0 ? 1.0F / factor : 1.0F;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    round_rows(const T* x, index_t rows, int cols, index_t ld, bool vector, const float* factor,
               T* y, index_t y_ld) {
  const index_t packs = y_ld / kWidth;
  const index_t i = static_cast<index_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= rows * packs) return;
  const int col = static_cast<int>(i % packs) * kWidth;
  float eight[kWidth];
  load_eight(eight, x + i / packs * ld, col, cols, vector);
  Pack<T, kWidth> pack;
#pragma unroll
  for (int j = 0; j < kWidth; ++j)
    pack.value[j] = from_float<T>(static_cast<float>(__nv_fp8_e4m3(eight[j] * *factor)));
  *reinterpret_cast<Pack<T, kWidth>*>(y + i / packs * y_ld + col) = pack;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    quantise_rows(const T* x, index_t rows, int cols, index_t ld, bool vector, const float* factor,
                  std::uint8_t* y, index_t y_ld) {
  const index_t packs = y_ld / kWidth;
  const index_t i = static_cast<index_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= rows * packs) return;
  const int col = static_cast<int>(i % packs) * kWidth;
  float eight[kWidth];
  load_eight(eight, x + i / packs * ld, col, cols, vector);
  Pack<__nv_fp8_e4m3, kWidth> pack;
#pragma unroll
  for (int j = 0; j < kWidth; ++j) pack.value[j] = __nv_fp8_e4m3(eight[j] * *factor);
  *reinterpret_cast<Pack<__nv_fp8_e4m3, kWidth>*>(y + i / packs * y_ld + col) = pack;
}

/// y[c][r] = x[r][c]; a block turns 64 rows by 64 columns.
constexpr int kSquare = 64;
template <class T>
__global__ void __launch_bounds__(kThreads)
    quantise_columns(const T* x, int rows, int cols, index_t ld, bool vector, const float* factor,
                     std::uint8_t* y, index_t y_ld) {
  __shared__ __nv_fp8_e4m3 square[kSquare][kSquare + 4];  // [column][row]
  constexpr int kPacks = kSquare / kWidth;
  const int row0 = static_cast<int>(blockIdx.x) * kSquare;
  const int col0 = static_cast<int>(blockIdx.y) * kSquare;
  for (int i = static_cast<int>(threadIdx.x); i < kSquare * kPacks; i += kThreads) {
    const int r = i / kPacks, c = i % kPacks * kWidth;
    float eight[kWidth] = {};
    if (row0 + r < rows) load_eight(eight, x + (row0 + r) * ld, col0 + c, cols, vector);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) square[c + j][r] = __nv_fp8_e4m3(eight[j] * *factor);
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kSquare * kPacks; i += kThreads) {
    const int c = i / kPacks, r = i % kPacks * kWidth;
    if (col0 + c >= cols || row0 + r >= y_ld) continue;
    Pack<__nv_fp8_e4m3, kWidth> pack;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) pack.value[j] = square[c][r + j];
    *reinterpret_cast<Pack<__nv_fp8_e4m3, kWidth>*>(y + (col0 + c) * y_ld + row0 + r) = pack;
  }
}

template <class Fn>
void visit_half(DType type, Fn&& fn) {
  T3D_CHECK(is_half(type), "fp8 operands come from 16-bit numbers, not {}", name_of(type));
  if (type == DType::bf16) return fn(Bf16{});
  return fn(F16{});
}

LaunchShape one_pack_per_thread(index_t packs) {
  return {blocks_for(packs, kThreads), 1, 1, kThreads};
}

}  // namespace

Fp8Scale::Fp8Scale(Device& device, Queue& queue, ConstTensorView x)
    : memory_(device, DType::f32, 1, 2 + kMaxPartials, MemoryKind::workspace) {
  auto* scale = memory_.view().as<float>();
  const index_t packs = x.rows * blocks_for(x.cols, kWidth);
  const index_t partials = std::min(blocks_for(packs, kThreads), kMaxPartials);
  visit_half(x.dtype, [&](auto number) {
    using T = decltype(number);
    launch(queue, {partials, 1, 1, kThreads}, partial_maxima<T>, x.as<T>(), x.rows, x.cols, x.ld,
           can_load_16_bytes(x), scale + 2);
  });
  launch(queue, {1, 1, 1, kThreads}, choose_scale, scale + 2, partials, scale);
}

const float* Fp8Scale::factor() const { return memory_.view().as<float>(); }

void fp8_round(Queue& queue, ConstTensorView x, const Fp8Scale& scale, TensorView y) {
  visit_half(x.dtype, [&](auto number) {
    using T = decltype(number);
    launch(queue, one_pack_per_thread(x.rows * (y.ld / kWidth)), round_rows<T>, x.as<T>(), x.rows,
           x.cols, x.ld, can_load_16_bytes(x), scale.factor(), y.as<T>(), y.ld);
  });
}

void fp8_quantise(Queue& queue, ConstTensorView x, bool transpose, const Fp8Scale& scale,
                  std::uint8_t* y, index_t ld) {
  visit_half(x.dtype, [&](auto number) {
    using T = decltype(number);
    const bool vector = can_load_16_bytes(x);
    if (transpose)
      launch(queue, {blocks_for(ld, kSquare), blocks_for(x.cols, kSquare), 1, kThreads},
             quantise_columns<T>, x.as<T>(), x.rows, x.cols, x.ld, vector, scale.factor(), y, ld);
    else
      launch(queue, one_pack_per_thread(x.rows * (ld / kWidth)), quantise_rows<T>, x.as<T>(),
             x.rows, x.cols, x.ld, vector, scale.factor(), y, ld);
  });
}

}  // namespace t3d::cuda
