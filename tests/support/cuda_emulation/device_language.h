// CUDA C++ as the host compiler sees it: qualifiers, vector types, built-in variables, barriers,
// shuffles, atomics and intrinsics.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "block.hpp"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __shared__ static thread_local
#define __restrict__ __restrict
#define __align__(n) alignas(n)
#define __grid_constant__

#define T3D_VECTOR2(name, type)           \
  struct alignas(2 * sizeof(type)) name { \
    type x, y;                            \
  };                                      \
  inline name make_##name(type x, type y) { return {x, y}; }
#define T3D_VECTOR3(name, type) \
  struct name {                 \
    type x, y, z;               \
  };                            \
  inline name make_##name(type x, type y, type z) { return {x, y, z}; }
#define T3D_VECTOR4(name, type)                                    \
  struct alignas(sizeof(type) == 8 ? 16 : 4 * sizeof(type)) name { \
    type x, y, z, w;                                               \
  };                                                               \
  inline name make_##name(type x, type y, type z, type w) { return {x, y, z, w}; }
T3D_VECTOR2(int2, int)
T3D_VECTOR2(uint2, unsigned)
T3D_VECTOR2(float2, float)
T3D_VECTOR2(double2, double)
T3D_VECTOR2(longlong2, long long)
T3D_VECTOR3(int3, int)
T3D_VECTOR3(uint3, unsigned)
T3D_VECTOR3(float3, float)
T3D_VECTOR4(int4, int)
T3D_VECTOR4(uint4, unsigned)
T3D_VECTOR4(float4, float)

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

// Built-in variables are read through conversions: members of launches may have the same names.
#define T3D_BUILT_IN(name, source)                                             \
  struct name##_t {                                                            \
    struct {                                                                   \
      operator unsigned() const { return ::t3d::emulation::place().source.x; } \
    } x;                                                                       \
    struct {                                                                   \
      operator unsigned() const { return ::t3d::emulation::place().source.y; } \
    } y;                                                                       \
    struct {                                                                   \
      operator unsigned() const { return ::t3d::emulation::place().source.z; } \
    } z;                                                                       \
  };                                                                           \
  inline constexpr name##_t name{};
T3D_BUILT_IN(threadIdx, thread)
T3D_BUILT_IN(blockIdx, block)
T3D_BUILT_IN(blockDim, launch->block)
T3D_BUILT_IN(gridDim, launch->grid)
inline constexpr int warpSize = 32;

inline void __syncthreads() { t3d::emulation::barrier(); }
inline int __syncthreads_count(int predicate) { return t3d::emulation::barrier(predicate != 0); }
inline int __syncthreads_or(int predicate) { return __syncthreads_count(predicate) > 0; }
inline int __syncthreads_and(int predicate) { return __syncthreads_count(predicate == 0) == 0; }
inline void __syncwarp(unsigned mask = 0xffffffffU) { t3d::emulation::gather(mask, nullptr, 0); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}

namespace t3d::emulation {

template <class T>
T of_lane(const Gathered& gathered, unsigned lane) {
  T value;
  std::memcpy(&value, gathered.lane[lane].data(), sizeof value);
  return value;
}
// A source outside of the mask is undefined on a GPU: here it is a fault.
template <class T>
T shuffle(unsigned mask, T value, int source, bool within) {
  static_assert(sizeof(T) <= 8);
  const Gathered& all = gather(mask, &value, sizeof value);
  if (!within) return value;
  if ((mask >> (source & 31) & 1U) == 0) fail("a shuffle reads a lane outside of its mask");
  return of_lane<T>(all, static_cast<unsigned>(source & 31));
}
inline int lane_now() { return static_cast<int>(place().lane); }

}  // namespace t3d::emulation

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  const int base = t3d::emulation::lane_now() / width * width;
  return t3d::emulation::shuffle(mask, value, base + (source & (width - 1)), true);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
  const int lane = t3d::emulation::lane_now(), source = lane ^ bits;
  return t3d::emulation::shuffle(mask, value, source, source / width <= lane / width);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32) {
  const int lane = t3d::emulation::lane_now(), source = lane + static_cast<int>(distance);
  return t3d::emulation::shuffle(mask, value, source, source / width == lane / width);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32) {
  const int lane = t3d::emulation::lane_now(), source = lane - static_cast<int>(distance);
  return t3d::emulation::shuffle(mask, value, source,
                                 source >= 0 && source / width == lane / width);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  const int own = predicate != 0;
  const auto& all = t3d::emulation::gather(mask, &own, sizeof own);
  unsigned bits = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if ((mask >> lane & 1U) != 0 && t3d::emulation::of_lane<int>(all, lane) != 0)
      bits |= 1U << lane;
  return bits;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) == mask;
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value) {
  const auto& all = t3d::emulation::gather(mask, &value, sizeof value);
  unsigned bits = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if ((mask >> lane & 1U) != 0 && t3d::emulation::of_lane<T>(all, lane) == value)
      bits |= 1U << lane;
  return bits;
}
template <class T>
T __reduce_add_sync(unsigned mask, T value) {
  const auto& all = t3d::emulation::gather(mask, &value, sizeof value);
  T sum = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if ((mask >> lane & 1U) != 0) sum += t3d::emulation::of_lane<T>(all, lane);
  return sum;
}
template <class T>
T __reduce_max_sync(unsigned mask, T value) {
  const auto& all = t3d::emulation::gather(mask, &value, sizeof value);
  T most = value;
  for (unsigned lane = 0; lane < 32; ++lane)
    if ((mask >> lane & 1U) != 0) most = std::max(most, t3d::emulation::of_lane<T>(all, lane));
  return most;
}

// Fibers of one block never run at once; blocks of several host threads may.
template <class T>
T atomicAdd(T* to, T value) {
  T old = __atomic_load_n(to, __ATOMIC_RELAXED);
  *to = old + value;
  return old;
}
template <>
inline float atomicAdd(float* to, float value) {
  const float old = *to;
  *to = old + value;
  return old;
}
template <>
inline double atomicAdd(double* to, double value) {
  const double old = *to;
  *to = old + value;
  return old;
}
template <class T>
T atomicSub(T* to, T value) {
  return atomicAdd(to, static_cast<T>(-value));
}
template <class T>
T atomicMax(T* to, T value) {
  const T old = *to;
  *to = std::max(old, value);
  return old;
}
template <class T>
T atomicMin(T* to, T value) {
  const T old = *to;
  *to = std::min(old, value);
  return old;
}
template <class T>
T atomicOr(T* to, T value) {
  const T old = *to;
  *to = old | value;
  return old;
}
template <class T>
T atomicExch(T* to, T value) {
  const T old = *to;
  *to = value;
  return old;
}
template <class T>
T atomicCAS(T* to, T expected, T value) {
  const T old = *to;
  if (old == expected) *to = value;
  return old;
}

template <class T>
T __ldg(const T* from) {
  return *from;
}
#define T3D_LOAD(name)    \
  template <class T>      \
  T name(const T* from) { \
    return *from;         \
  }
T3D_LOAD(__ldcs)
T3D_LOAD(__ldcg)
T3D_LOAD(__ldca)
T3D_LOAD(__ldlu)
T3D_LOAD(__ldcv)
#define T3D_STORE(name)       \
  template <class T>          \
  void name(T* to, T value) { \
    *to = value;              \
  }
T3D_STORE(__stcs)
T3D_STORE(__stcg)
T3D_STORE(__stwb)
T3D_STORE(__stwt)

using std::max;
using std::min;
inline float __expf(float x) { return std::exp(x); }
inline float __exp2f(float x) { return std::exp2(x); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __sinf(float x) { return std::sin(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float rsqrtf(float x) { return 1.0F / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float __frsqrt_rn(float x) { return 1.0F / std::sqrt(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0F / x; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __dsqrt_rn(double x) { return std::sqrt(x); }
inline double __fma_rn(double x, double y, double z) { return std::fma(x, y, z); }
inline float __saturatef(float x) { return std::min(1.0F, std::max(0.0F, x)); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline unsigned __brev(unsigned x) {
  unsigned out = 0;
  for (int bit = 0; bit < 32; ++bit) out |= (x >> bit & 1U) << (31 - bit);
  return out;
}
inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(static_cast<std::uint64_t>(x) * y >> 32);
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const std::uint64_t both = static_cast<std::uint64_t>(y) << 32 | x;
  unsigned out = 0;
  for (int i = 0; i < 4; ++i)
    out |= static_cast<unsigned>(both >> (8 * (selector >> (4 * i) & 7U)) & 0xffU) << (8 * i);
  return out;
}
