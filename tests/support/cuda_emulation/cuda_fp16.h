// half of CUDA on the host: the bits and rounding of core/dtype.hpp's.
#pragma once
#include "core/dtype.hpp"
#include "device_language.h"

struct __half {
  std::uint16_t bits;
  __half() = default;
  __half(float x) : bits(t3d::f16(x).bits) {}  // NOLINT: as CUDA's
  operator float() const {                     // NOLINT
    t3d::f16 value;
    value.bits = bits;
    return static_cast<float>(value);
  }
};
struct alignas(4) __half2 {
  __half x, y;
};
inline float __half2float(__half x) { return static_cast<float>(x); }
inline __half __float2half_rn(float x) { return {x}; }
inline __half __float2half(float x) { return {x}; }
inline __half2 __floats2half2_rn(float x, float y) { return {{x}, {y}}; }
inline __half2 __float22half2_rn(float2 x) { return {{x.x}, {x.y}}; }
inline float2 __half22float2(__half2 x) {
  return {static_cast<float>(x.x), static_cast<float>(x.y)};
}
inline float __low2float(__half2 x) { return x.x; }
inline float __high2float(__half2 x) { return x.y; }
inline __half __ushort_as_half(unsigned short bits) {
  __half x;
  x.bits = bits;
  return x;
}
inline unsigned short __half_as_ushort(__half x) { return x.bits; }
