// Counter-based random numbers against the known answers of Random123 and their promises.
#include "core/random.hpp"

#include <cmath>

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
