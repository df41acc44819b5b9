// Counter-based random numbers (Philox 4x32-10: Salmon et al., SC'11, section 3.3). Every number
// is a pure function of (seed, stream, index), where index is the GLOBAL element number, so initial
// weights, dropout masks and the order of samples do not depend on the mesh. All of it also works
// in CUDA kernels, with the same bits (portable_math.hpp).
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "core/portable_math.hpp"
#include "core/types.hpp"

namespace t3d {

/// One Philox 4x32-10 block: 128 random bits for a 128-bit counter and a 64-bit key.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
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

/// The random bits of the global elements [4*block, 4*block + 4), one word each.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> random_block(const RandomKey& key,
                                                                  std::uint64_t block) {
  return philox(
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
       static_cast<std::uint32_t>(key.stream), static_cast<std::uint32_t>(key.stream >> 32)},
      key.seed);
}

/// 32 random bits for global element `index`.
[[nodiscard]] constexpr std::uint32_t random_bits(const RandomKey& key, index_t index) {
  const auto at = static_cast<std::uint64_t>(index);
  return random_block(key, at >> 2)[at & 3U];
}

/// Uniform in [0, 1), 24 bits: exactly representable in fp32.
[[nodiscard]] constexpr float random_uniform(const RandomKey& key, index_t index) {
  return static_cast<float>(random_bits(key, index) >> 8) * 0x1p-24F;
}

/// Standard normals of two neighbouring elements, the first one with an even index.
struct NormalPair {
  double even = 0, odd = 0;
};

/// Box-Muller in fp64 from the two elements' random bits. Its bits are the same everywhere, if
/// products and sums are rounded one by one (no contraction to fma; src/CMakeLists.txt). A
/// template, as only those may be constexpr, which kernels need, around a square root that is not.
template <class Word>
[[nodiscard]] constexpr NormalPair normal_pair(Word even_bits, Word odd_bits) {
  const double u = (static_cast<double>(even_bits) + 0.5) * 0x1p-32;
  const double radius = std::sqrt(-2.0 * portable::natural_log(u));
  const portable::SineCosine angle = portable::sine_cosine_of_turn(odd_bits);
  return {radius * angle.cosine, radius * angle.sine};
}

/// Standard normal for global element `index`.
[[nodiscard]] inline double random_normal(const RandomKey& key, index_t index) {
  const index_t even = index & ~index_t{1};
  const NormalPair pair = normal_pair(random_bits(key, even), random_bits(key, even + 1));
  return (index & 1) != 0 ? pair.odd : pair.even;
}

/// The image of `position` under a keyed permutation of [0, length): 4-round Feistel network on
/// an even number of bits with cycle walking. O(1) and stateless.
[[nodiscard]] index_t permute(const RandomKey& key, index_t position, index_t length);

}  // namespace t3d
