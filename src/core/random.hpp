// Counter-based random numbers (Philox 4x32-10: Salmon et al., SC'11, section 3.3). Every number
// is a pure function of (seed, stream, index), where index is the GLOBAL element number, so initial
// weights, dropout masks and the order of samples do not depend on the mesh.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "core/types.hpp"

namespace t3d {

/// One Philox 4x32-10 block: 128 random bits for a 128-bit counter and a 64-bit key.
[[nodiscard]] inline std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                                         std::uint64_t key) {
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ k0, static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ k1,
               static_cast<std::uint32_t>(a)};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return counter;
}

/// Names one independent sequence of numbers: key from the run's seed, stream from a purpose.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
};

/// Stream number of a text such as a parameter's name (FNV-1a, 64 bit).
[[nodiscard]] constexpr std::uint64_t stream_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char letter : text)
    hash = (hash ^ static_cast<std::uint8_t>(letter)) * 0x100000001b3ULL;
  return hash;
}

/// Word `index % 4` of block `index / 4`: 32 random bits for global element `index`.
[[nodiscard]] inline std::uint32_t random_bits(const RandomKey& key, index_t index) {
  const auto block = static_cast<std::uint64_t>(index) >> 2;
  const auto words =
      philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
              static_cast<std::uint32_t>(key.stream), static_cast<std::uint32_t>(key.stream >> 32)},
             key.seed);
  return words[static_cast<std::uint64_t>(index) & 3U];
}

/// Uniform in [0, 1), 24 bits: exactly representable in fp32.
[[nodiscard]] inline float random_uniform(const RandomKey& key, index_t index) {
  return static_cast<float>(random_bits(key, index) >> 8) * 0x1p-24F;
}

/// Standard normal for global element `index` (Box-Muller in fp64, one half of block `index/2`).
[[nodiscard]] inline double random_normal(const RandomKey& key, index_t index) {
  const index_t pair = index >> 1;
  const double u = (static_cast<double>(random_bits(key, 2 * pair)) + 0.5) * 0x1p-32;
  const double v = static_cast<double>(random_bits(key, 2 * pair + 1)) * 0x1p-32;
  const double radius = std::sqrt(-2.0 * std::log(u));
  const double angle = 6.283185307179586476925 * v;
  return (index & 1) != 0 ? radius * std::sin(angle) : radius * std::cos(angle);
}

/// The image of `position` under a keyed permutation of [0, length): 4-round Feistel network on
/// an even number of bits with cycle walking. O(1) and stateless.
[[nodiscard]] index_t permute(const RandomKey& key, index_t position, index_t length);

}  // namespace t3d
