// Logarithm, sine and cosine with the same bits on every host and GPU: only products, sums and one
// division of fp64, each rounded once, in an order that the source fixes. Libraries differ in their
// last bits, which would make initial weights depend on the machine. Sources that use these must be
// compiled without contraction of products and sums (-ffp-contract=off, nvcc -fmad=false).
#pragma once
#include <bit>
#include <cstdint>

namespace t3d::portable {

/// The natural logarithm of a normal positive number; relative error below 1e-15.
/// x = 2^e m with m in [sqrt(1/2), sqrt(2)), log m = 2 atanh s, s = (m-1)/(m+1), |s| < 0.172.
[[nodiscard]] constexpr double natural_log(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  constexpr std::uint64_t kFraction = (std::uint64_t{1} << 52) - 1;
  constexpr std::uint64_t kOne = std::uint64_t{1023} << 52;
  constexpr std::uint64_t kRootOfTwo = 0x6a09e667f3bcdU;  // fraction bits of sqrt(2)
  const std::uint64_t fraction = bits & kFraction;
  const std::uint64_t halve = fraction >= kRootOfTwo ? 1 : 0;
  const double m = std::bit_cast<double>((kOne - (halve << 52)) | fraction);
  const double e = static_cast<double>(static_cast<std::int64_t>((bits >> 52) + halve) - 1023);
  const double s = (m - 1.0) / (m + 1.0), t = s * s;
  double series = 1.0 / 23;
  series = series * t + 1.0 / 21;
  series = series * t + 1.0 / 19;
  series = series * t + 1.0 / 17;
  series = series * t + 1.0 / 15;
  series = series * t + 1.0 / 13;
  series = series * t + 1.0 / 11;
  series = series * t + 1.0 / 9;
  series = series * t + 1.0 / 7;
  series = series * t + 1.0 / 5;
  series = series * t + 1.0 / 3;
  // ln 2 in two parts: the first has 21 low zero bits, so that its product with e is exact.
  constexpr double kLn2High = 0x1.62e42fee00000p-1, kLn2Low = 0x1.a39ef35793c76p-33;
  return e * kLn2High + (2.0 * s + (2.0 * s * t * series + e * kLn2Low));
}

struct SineCosine {
  double sine = 0, cosine = 0;
};

/// Sine and cosine of 2 pi fraction / 2^32; absolute error below 1e-15. The quadrant is exact; the
/// rest, at most 1/8 of a turn, goes into Taylor's series.
[[nodiscard]] constexpr SineCosine sine_cosine_of_turn(std::uint32_t fraction) {
  const std::uint32_t quadrant = (fraction + (std::uint32_t{1} << 29)) >> 30;  // the nearest one
  const auto rest = static_cast<std::int32_t>(fraction - (quadrant << 30));
  constexpr double kHalfPi = 1.5707963267948966;
  const double a = static_cast<double>(rest) * 0x1p-30 * kHalfPi, t = a * a;
  double sine = 1.0 / 355687428096000;  // 1/17!
  sine = sine * t - 1.0 / 1307674368000;
  sine = sine * t + 1.0 / 6227020800;
  sine = sine * t - 1.0 / 39916800;
  sine = sine * t + 1.0 / 362880;
  sine = sine * t - 1.0 / 5040;
  sine = sine * t + 1.0 / 120;
  sine = sine * t - 1.0 / 6;
  sine = a + a * t * sine;
  double cosine = 1.0 / 20922789888000;  // 1/16!
  cosine = cosine * t - 1.0 / 87178291200;
  cosine = cosine * t + 1.0 / 479001600;
  cosine = cosine * t - 1.0 / 3628800;
  cosine = cosine * t + 1.0 / 40320;
  cosine = cosine * t - 1.0 / 720;
  cosine = cosine * t + 1.0 / 24;
  cosine = cosine * t - 1.0 / 2;
  cosine = 1.0 + t * cosine;
  switch (quadrant & 3U) {
    case 0: return {sine, cosine};
    case 1: return {cosine, -sine};
    case 2: return {-sine, -cosine};
    default: return {-cosine, sine};
  }
}

}  // namespace t3d::portable
