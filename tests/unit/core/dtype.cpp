// Rounding of the 16-bit floats and the sizes of the formats.
#include "core/dtype.hpp"

#include <cmath>
#include <limits>

#include "support/catch.hpp"

namespace t3d {
namespace {

std::uint16_t bits_of(float value) { return bf16(value).bits; }

TEST_CASE("every bf16 survives the way through float", "[dtype]") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    bf16 value;
    value.bits = static_cast<std::uint16_t>(bits);
    const auto wide = static_cast<float>(value);
    if (std::isnan(wide))
      REQUIRE(std::isnan(static_cast<float>(bf16(wide))));
    else
      REQUIRE(bits_of(wide) == bits);
  }
}

TEST_CASE("bf16 rounds to nearest, ties to even", "[dtype]") {
  CHECK(bits_of(1.0F) == 0x3f80);
  CHECK(bits_of(1.0F + 0x1p-8F) == 0x3f80);             // tie, down to even
  CHECK(bits_of(1.0F + 0x1p-8F + 0x1p-20F) == 0x3f81);  // just above
  CHECK(bits_of(1.0F + 3 * 0x1p-8F) == 0x3f82);         // tie, up to even
  CHECK(bits_of(-1.0F - 3 * 0x1p-8F) == 0xbf82);
  CHECK(bits_of(std::numeric_limits<float>::max()) == 0x7f80);  // beyond the largest: infinity
  CHECK(bits_of(std::numeric_limits<float>::infinity()) == 0x7f80);
  CHECK(bits_of(-0.0F) == 0x8000);
  CHECK(bits_of(0x1p-133F) == 0x0001);  // the smallest subnormal
}

TEST_CASE("NaN stays NaN whatever its payload", "[dtype]") {
  for (const std::uint32_t bits : {0x7f800001U, 0x7fffffffU, 0xff800001U, 0xffffffffU})
    CHECK(std::isnan(static_cast<float>(bf16(std::bit_cast<float>(bits)))));
}

TEST_CASE("every fp16 survives the way through float", "[dtype]") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    f16 value;
    value.bits = static_cast<std::uint16_t>(bits);
    const auto wide = static_cast<float>(value);
    if (std::isnan(wide))
      REQUIRE(std::isnan(static_cast<float>(f16(wide))));
    else
      REQUIRE(f16(wide).bits == bits);
  }
}

TEST_CASE("fp16 rounds to nearest, ties to even, subnormals too", "[dtype]") {
  for (std::uint32_t bits = 0; bits < 0x7bff; ++bits) {
    f16 low, high;
    low.bits = static_cast<std::uint16_t>(bits);
    high.bits = static_cast<std::uint16_t>(bits + 1);
    const float a = static_cast<float>(low), b = static_cast<float>(high);
    const float middle = a + (b - a) / 2;  // exact
    REQUIRE(f16(middle).bits == (bits % 2 == 0 ? bits : bits + 1));
    REQUIRE(f16(std::nextafter(middle, a)).bits == bits);
    REQUIRE(f16(std::nextafter(middle, b)).bits == bits + 1);
    REQUIRE(f16(-middle).bits == (f16(middle).bits | 0x8000));
  }
  CHECK(f16(65504.0F).bits == 0x7bff);
  CHECK(f16(65519.0F).bits == 0x7bff);
  CHECK(f16(65520.0F).bits == 0x7c00);  // tie with 65536: infinity
  CHECK(f16(1e30F).bits == 0x7c00);
  CHECK(f16(-std::numeric_limits<float>::infinity()).bits == 0xfc00);
}

TEST_CASE("sizes and names", "[dtype]") {
  CHECK(size_of(DType::f64) == 8);
  CHECK(size_of(DType::f32) == 4);
  CHECK(size_of(DType::bf16) == 2);
  CHECK(size_of(DType::f16) == 2);
  CHECK(size_of(DType::i32) == 4);
  CHECK(name_of(DType::bf16) == "bf16");
  CHECK(dtype_of<bf16>() == DType::bf16);
  CHECK(accumulator_of(DType::bf16) == DType::f32);
  CHECK(accumulator_of(DType::f64) == DType::f64);
}

}  // namespace
}  // namespace t3d
