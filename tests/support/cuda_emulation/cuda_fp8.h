// The 8-bit floats of CUDA on the host: e4m3 (4 exponent bits, no infinity, largest 448) and e5m2
// (5 exponent bits, largest 57344), conversion by nearest even, beyond the largest to the largest.
#pragma once
#include "cuda_fp16.h"

using __nv_fp8_storage_t = unsigned char;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };
struct __half_raw {
  unsigned short x;
};

namespace t3d::emulation {

inline float fp8_value(unsigned char bits, __nv_fp8_interpretation_t kind) {
  const int mantissa_bits = kind == __NV_E4M3 ? 3 : 2, bias = kind == __NV_E4M3 ? 7 : 15;
  const int rest = bits & 0x7f, exponent = rest >> mantissa_bits;
  const int mantissa = rest & ((1 << mantissa_bits) - 1);
  const float sign = (bits & 0x80) != 0 ? -1.0F : 1.0F;
  if (kind == __NV_E4M3 ? rest == 0x7f : rest > 0x7c) return std::nanf("");
  if (kind == __NV_E5M2 && rest == 0x7c) return sign * HUGE_VALF;
  if (exponent == 0)
    return sign * std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits);
  return sign * std::ldexp(static_cast<float>(mantissa + (1 << mantissa_bits)),
                           exponent - bias - mantissa_bits);
}

inline unsigned char fp8_bits(float x, __nv_fp8_interpretation_t kind) {
  const unsigned char sign = std::signbit(x) ? 0x80 : 0;
  if (std::isnan(x)) return static_cast<unsigned char>(sign | 0x7f);
  const float size = std::fabs(x), largest = kind == __NV_E4M3 ? 448.0F : 57344.0F;
  const unsigned char top = kind == __NV_E4M3 ? 0x7e : 0x7b;
  if (size >= largest) return static_cast<unsigned char>(sign | top);
  int low = 0, high = top;  // neighbours in the ordered list of numbers
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (fp8_value(static_cast<unsigned char>(middle), kind) <= size ? low : high) = middle;
  }
  const float below = size - fp8_value(static_cast<unsigned char>(low), kind);
  const float above = fp8_value(static_cast<unsigned char>(high), kind) - size;
  const int nearest = below < above ? low : above < below ? high : low % 2 == 0 ? low : high;
  return static_cast<unsigned char>(sign | nearest);
}

}  // namespace t3d::emulation

inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t,
                                                __nv_fp8_interpretation_t kind) {
  return t3d::emulation::fp8_bits(x, kind);
}
inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t kind) {
  return {__half(t3d::emulation::fp8_value(x, kind)).bits};
}
template <__nv_fp8_interpretation_t kind>
struct T3dFp8 {
  __nv_fp8_storage_t __x;
  T3dFp8() = default;
  explicit T3dFp8(float x) : __x(t3d::emulation::fp8_bits(x, kind)) {}
  explicit operator float() const { return t3d::emulation::fp8_value(__x, kind); }
};
using __nv_fp8_e4m3 = T3dFp8<__NV_E4M3>;
using __nv_fp8_e5m2 = T3dFp8<__NV_E5M2>;
