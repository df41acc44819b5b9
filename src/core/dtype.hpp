// Number formats: name, size, and the host's 16-bit floats.
#pragma once
#include <bit>
#include <cstdint>
#include <string_view>

#include "core/types.hpp"

namespace t3d {

enum class DType : std::uint8_t { f64, f32, bf16, i32, f16 };

[[nodiscard]] constexpr index_t size_of(DType type) {
  switch (type) {
    case DType::f64: return 8;
    case DType::f32: return 4;
    case DType::i32: return 4;
    case DType::bf16: return 2;
    case DType::f16: return 2;
  }
  return 0;
}

[[nodiscard]] constexpr std::string_view name_of(DType type) {
  switch (type) {
    case DType::f64: return "fp64";
    case DType::f32: return "fp32";
    case DType::i32: return "int32";
    case DType::bf16: return "bf16";
    case DType::f16: return "fp16";
  }
  return "?";
}

/// bfloat16 as the upper half of an IEEE float, rounded to nearest even; NaN stays NaN.
struct bf16 {
  std::uint16_t bits = 0;

  bf16() = default;
  explicit bf16(float value) : bits(round(value)) {}
  explicit bf16(double value) : bf16(static_cast<float>(value)) {}
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }

 private:
  static std::uint16_t round(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    if ((word & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((word >> 16) | 0x40U);
    return static_cast<std::uint16_t>((word + 0x7fffU + ((word >> 16) & 1U)) >> 16);
  }
};

/// IEEE half, rounded to nearest even; beyond 65504 infinity, NaN stays NaN.
struct f16 {
  std::uint16_t bits = 0;

  f16() = default;
  explicit f16(float value) : bits(round(value)) {}
  explicit f16(double value) : f16(static_cast<float>(value)) {}
  explicit operator float() const {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
    const std::uint32_t rest = bits & 0x7fffU;
    if (rest >= 0x7c00U) return std::bit_cast<float>(sign | 0x7f800000U | (rest & 0x3ffU) << 13);
    if (rest >= 0x400U) return std::bit_cast<float>(sign | ((rest << 13) + (112U << 23)));
    const float subnormal = static_cast<float>(rest) * 0x1p-24F;  // exact
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(subnormal));
  }
  explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }

 private:
  static std::uint16_t round(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>(word >> 16 & 0x8000U);
    const std::uint32_t size = word & 0x7fffffffU;
    if (size > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U);
    if (size >= 0x47800000U) return static_cast<std::uint16_t>(sign | 0x7c00U);
    if (size < 0x38800000U) {  // below 2^-14: adding 1/2 leaves a multiple of 2^-24 in the low bits
      const float shifted = std::bit_cast<float>(size) + 0.5F;
      return static_cast<std::uint16_t>(sign |
                                        (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U));
    }
    return static_cast<std::uint16_t>(sign |
                                      (size - (112U << 23) + 0xfffU + (size >> 13 & 1U)) >> 13);
  }
};

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<bf16>() {
  return DType::bf16;
}
template <>
constexpr DType dtype_of<f16>() {
  return DType::f16;
}
template <>
constexpr DType dtype_of<std::int32_t>() {
  return DType::i32;
}

[[nodiscard]] constexpr bool is_half(DType type) {
  return type == DType::bf16 || type == DType::f16;
}

/// Master weights, statistics and accumulators: fp64 beside fp64 activations, else fp32.
[[nodiscard]] constexpr DType accumulator_of(DType type) {
  return type == DType::f64 ? DType::f64 : DType::f32;
}

}  // namespace t3d
