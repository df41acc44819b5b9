// Counter-based random numbers against the known answers of Random123 and their promises.
#include "core/random.hpp"

#include <cmath>
#include <numbers>

#include "support/catch.hpp"

namespace t3d {
namespace {

using Words = std::array<std::uint32_t, 4>;

TEST_CASE("philox gives the known answers of Random123", "[random]") {
  CHECK(philox({0, 0, 0, 0}, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  const std::uint32_t ones = 0xffffffff;
  CHECK(philox({ones, ones, ones, ones}, 0xffffffffffffffffULL) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  // The key's first word is its low half.
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822ULL) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("streams of different names differ", "[random]") {
  static_assert(stream_of("") == 0xcbf29ce484222325ULL);
  static_assert(stream_of("a") == 0xaf63dc4c8601ec8cULL);  // FNV-1a's published vector
  CHECK(random_bits({1, stream_of("a")}, 0) != random_bits({1, stream_of("b")}, 0));
  CHECK(random_bits({1, 7}, 0) != random_bits({2, 7}, 0));
}

TEST_CASE("uniform numbers lie in [0, 1) and have the right mean", "[random]") {
  const RandomKey key{42, stream_of("uniform")};
  double sum = 0;
  const index_t n = 100000;
  for (index_t at = 0; at < n; ++at) {
    const float value = random_uniform(key, at);
    REQUIRE(value >= 0);
    REQUIRE(value < 1);
    sum += static_cast<double>(value);
  }
  CHECK(std::abs(sum / n - 0.5) < 5 * std::sqrt(1.0 / 12 / n));
}

TEST_CASE("normal numbers have moments 0, 1, 0, 3", "[random]") {
  const RandomKey key{7, stream_of("normal")};
  const index_t n = 200000;
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  for (index_t at = 0; at < n; ++at) {
    const double x = random_normal(key, at);
    REQUIRE(std::isfinite(x));
    m1 += x / n;
    m2 += x * x / n;
    m3 += x * x * x / n;
    m4 += x * x * x * x / n;
  }
  const double unit = 1 / std::sqrt(static_cast<double>(n));
  CHECK(std::abs(m1) < 5 * unit);
  CHECK(std::abs(m2 - 1) < 5 * std::sqrt(2.0) * unit);
  CHECK(std::abs(m3) < 5 * std::sqrt(15.0) * unit);
  CHECK(std::abs(m4 - 3) < 5 * std::sqrt(96.0) * unit);
}

TEST_CASE("the logarithm agrees with the library's", "[random]") {
  double worst = 0;
  const auto compare = [&](double x) {
    const double want = std::log(x), got = portable::natural_log(x);
    if (want != got) worst = std::max(worst, std::abs(got - want) / std::abs(want));
  };
  const RandomKey key{9, stream_of("log")};
  for (index_t at = 0; at < 200000; ++at) {
    const double fraction = static_cast<double>(random_bits(key, at)) + 0.5;
    compare(fraction * 0x1p-32);
    compare(std::ldexp(fraction, static_cast<int>(at % 1900) - 980));
  }
  for (int exponent = -33; exponent < 3; ++exponent)  // around every border of the reduction
    for (const double m : {1.0, 0.5, std::numbers::sqrt2, std::numbers::sqrt2 / 2})
      for (int step = -3; step <= 3; ++step) compare(std::ldexp(m + step * 0x1p-52, exponent));
  CHECK(portable::natural_log(1.0) == 0.0);
  CHECK(worst < 1e-15);
}

TEST_CASE("sine and cosine agree with the library's", "[random]") {
  double worst = 0;
  const auto compare = [&](std::uint32_t fraction) {
    const long double turn = 2 * std::numbers::pi_v<long double> * fraction / 4294967296.0L;
    const auto got = portable::sine_cosine_of_turn(fraction);
    worst = std::max(worst, std::abs(got.sine - static_cast<double>(std::sin(turn))));
    worst = std::max(worst, std::abs(got.cosine - static_cast<double>(std::cos(turn))));
  };
  const RandomKey key{9, stream_of("sine")};
  for (index_t at = 0; at < 200000; ++at) compare(random_bits(key, at));
  for (std::uint32_t eighth = 0; eighth < 8; ++eighth)
    for (std::uint32_t step = 0; step < 7; ++step) compare((eighth << 29) + step - 3);
  CHECK(worst < 1e-15);
  static_assert(portable::sine_cosine_of_turn(0).cosine == 1.0);
  static_assert(portable::sine_cosine_of_turn(std::uint32_t{1} << 30).sine == 1.0);
}

// A change of these bits changes every initial weight.
TEST_CASE("normal numbers keep their bits", "[random]") {
  const RandomKey key{3, stream_of("w")};
  CHECK(random_normal(key, 0) == 0x1.dd5050296469ap-3);
  CHECK(random_normal(key, 1) == -0x1.a130ae7621dd3p-3);
  CHECK(random_normal(key, 2) == -0x1.dcb8ce9911e7fp+0);
  CHECK(random_normal(key, 3) == -0x1.c037f2ca4f8fbp-3);
  CHECK(random_normal(key, 12345) == -0x1.f0db49c91d151p-3);
  CHECK(random_normal(key, (index_t{1} << 40) + 7) == 0x1.027a58327bd1cp+0);
}

TEST_CASE("permute is a bijection that depends on the key", "[random]") {
  for (const index_t length : {1, 2, 3, 4, 5, 16, 17, 100, 1000, 4097}) {
    const RandomKey key{11, static_cast<std::uint64_t>(length)};
    std::vector<bool> seen(static_cast<std::size_t>(length), false);
    for (index_t at = 0; at < length; ++at) {
      const index_t image = permute(key, at, length);
      REQUIRE(image >= 0);
      REQUIRE(image < length);
      REQUIRE_FALSE(seen[static_cast<std::size_t>(image)]);
      seen[static_cast<std::size_t>(image)] = true;
    }
  }
  int moved = 0;
  for (index_t at = 0; at < 1000; ++at)
    moved += permute({1, 0}, at, 1000) != permute({2, 0}, at, 1000);
  CHECK(moved > 950);
}

TEST_CASE("permute works on long ranges", "[random]") {
  const index_t length = index_t{3} << 40;
  for (index_t at = 0; at < 1000; ++at) {
    const index_t image = permute({5, 6}, length - 1 - at, length);
    REQUIRE(image >= 0);
    REQUIRE(image < length);
  }
}

}  // namespace
}  // namespace t3d
