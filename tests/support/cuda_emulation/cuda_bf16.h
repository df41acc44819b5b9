// bfloat16 of CUDA on the host: the bits and rounding of core/dtype.hpp's.
#pragma once
#include "core/dtype.hpp"
#include "device_language.h"

struct __nv_bfloat16 {
  std::uint16_t bits;
  __nv_bfloat16() = default;
  __nv_bfloat16(float x) : bits(t3d::bf16(x).bits) {}  // NOLINT: as CUDA's
  operator float() const {                             // NOLINT
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
inline float __bfloat162float(__nv_bfloat16 x) { return static_cast<float>(x); }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return {x}; }
inline __nv_bfloat16 __float2bfloat16(float x) { return {x}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {{x}, {y}}; }
inline __nv_bfloat162 __float22bfloat162_rn(float2 x) { return {{x.x}, {x.y}}; }
inline float2 __bfloat1622float2(__nv_bfloat162 x) {
  return {static_cast<float>(x.x), static_cast<float>(x.y)};
}
inline float __low2float(__nv_bfloat162 x) { return x.x; }
inline float __high2float(__nv_bfloat162 x) { return x.y; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  __nv_bfloat16 x;
  x.bits = bits;
  return x;
}
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
