// Random numbers of one purpose in one simulated run: a counter-based stream (core/random.hpp), so
// that a run repeats to the bit, and what one purpose draws changes no other one.
#pragma once
#include <fmt/format.h>

#include "core/random.hpp"

namespace t3d {

class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view purpose, index_t run)
      : key_{seed, stream_of(fmt::format("simulate/{}/{}", purpose, run))} {}

  /// In (0, 1), 53 bits.
  double uniform() {
    const auto [low, high] = two_words();
    return (static_cast<double>(low >> 5) * 67108864.0 + static_cast<double>(high >> 6) + 0.5) *
           0x1p-53;
  }
  /// Of mean 1.
  double exponential() { return -portable::natural_log(uniform()); }
  /// Of mean 0 and deviation 1.
  double normal() {
    const auto [radius, angle] = two_words();
    return normal_pair(radius, angle).even;
  }

 private:
  std::pair<std::uint32_t, std::uint32_t> two_words() {
    const auto at = static_cast<std::size_t>(drawn_ & 1U) * 2;
    if (at == 0) words_ = random_block(key_, drawn_ >> 1);
    ++drawn_;
    return {words_[at], words_[at + 1]};
  }

  RandomKey key_;
  std::uint64_t drawn_ = 0;
  std::array<std::uint32_t, 4> words_{};
};

}  // namespace t3d
