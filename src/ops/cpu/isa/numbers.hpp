// Widening, narrowing and exp in a form that compilers vectorise. Comparisons are written so that
// a NaN argument survives the clamps.
#pragma once
#include "ops/cpu/kernels.hpp"

// Before a loop whose iterations do not depend on each other, whatever its pointers look like.
#ifdef __clang__
#define T3D_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define T3D_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace t3d::cpu::T3D_ISA {
namespace {

inline float widen(float value) { return value; }
inline float widen(bf16 value) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(value.bits) << 16);
}

inline void narrow(float value, float& to) { to = value; }
inline void narrow(float value, bf16& to) {
  const auto word = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t even = (word + 0x7fffU + ((word >> 16) & 1U)) >> 16;
  const std::uint32_t nan = (word >> 16) | 0x40U;
  to.bits = static_cast<std::uint16_t>((word & 0x7fffffffU) > 0x7f800000U ? nan : even);
}

/// exp(x) to about 1e-7 relative; x is clamped to [-87.3, 88.3], so the result is never 0 or inf.
/// exp(n ln2 + f) = 2^n exp(f), |f| <= ln2/2 (polynomial: Cephes expf).
inline float exp_clamped(float x) {
  x = x < -87.3F ? -87.3F : x;
  x = x > 88.3F ? 88.3F : x;
  const float n = __builtin_rintf(x * 1.44269504F);
  const float f = x - n * 0.693359375F + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * f + 1.3981999507e-3F;
  p = p * f + 8.3334519073e-3F;
  p = p * f + 4.1665795894e-2F;
  p = p * f + 1.6666665459e-1F;
  p = p * f + 5.0000001201e-1F;
  p = p * f * f + f + 1.0F;
  const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127) << 23;
  return p * __builtin_bit_cast(float, exponent);
}

inline float sigmoid(float x) { return 1.0F / (1.0F + exp_clamped(-x)); }

}  // namespace
}  // namespace t3d::cpu::T3D_ISA
