// Numbers in kernels: 16-bit formats as fp32 in registers, and 16-byte packs of neighbours.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>

#include "core/dtype.hpp"
#include "core/error.hpp"

namespace t3d::cuda {

using Bf16 = __nv_bfloat16;
using F16 = __half;

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(Bf16 x) { return __bfloat162float(x); }
__device__ __forceinline__ float to_float(F16 x) { return __half2float(x); }
__device__ __forceinline__ float to_float(double x) { return static_cast<float>(x); }
__device__ __forceinline__ float to_float(std::int32_t x) { return static_cast<float>(x); }

/// Rounded to nearest even.
template <class T>
__device__ __forceinline__ T from_float(float x) {
  return static_cast<T>(x);
}
template <>
__device__ __forceinline__ Bf16 from_float<Bf16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ __forceinline__ F16 from_float<F16>(float x) {
  return __float2half_rn(x);
}

/// Two numbers as they lie in one register of an mma fragment, the first one low.
template <class T>
__device__ __forceinline__ std::uint32_t pack_pair(float low, float high);
template <>
__device__ __forceinline__ std::uint32_t pack_pair<Bf16>(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  std::uint32_t word;
  memcpy(&word, &pair, sizeof word);
  return word;
}
template <>
__device__ __forceinline__ std::uint32_t pack_pair<F16>(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  std::uint32_t word;
  memcpy(&word, &pair, sizeof word);
  return word;
}

/// N neighbours moved by one instruction (N * sizeof(T) = 4, 8 or 16 bytes, so aligned).
template <class T, int N>
struct alignas(sizeof(T) * static_cast<std::size_t>(N)) Pack {
  T value[static_cast<std::size_t>(N)];
};
template <class T>
inline constexpr int kPack = 16 / static_cast<int>(sizeof(T));

/// Calls fn with a value of the kernel type of `type`: activations fp32, bf16, fp16.
template <class Fn>
void visit_activation(DType type, Fn&& fn) {
  switch (type) {
    case DType::f32: return fn(float{});
    case DType::bf16: return fn(Bf16{});
    case DType::f16: return fn(F16{});
    default: throw_error(ExitCode::internal, "no CUDA kernel for {}", name_of(type));
  }
}
/// All number formats that a buffer may have, fp64 and int32 too.
template <class Fn>
void visit_any(DType type, Fn&& fn) {
  if (type == DType::f64) return fn(double{});
  if (type == DType::i32) return fn(std::int32_t{});
  visit_activation(type, fn);
}

}  // namespace t3d::cuda
