#include "core/random.hpp"

#include "core/error.hpp"

namespace t3d {

index_t permute(const RandomKey& key, index_t position, index_t length) {
  T3D_CHECK(position >= 0 && position < length, "position {} of {}", position, length);
  if (length == 1) return 0;
  int half = 1;
  while ((index_t{1} << (2 * half)) < length) ++half;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  auto value = static_cast<std::uint64_t>(position);
  do {  // cycle walking: fewer than 4 rounds on average, as the domain is < 4 x length
    std::uint64_t left = value >> half;
    std::uint64_t right = value & mask;
    for (std::uint32_t round = 0; round < 4; ++round) {
      const auto words =
          philox({static_cast<std::uint32_t>(right), round, static_cast<std::uint32_t>(key.stream),
                  static_cast<std::uint32_t>(key.stream >> 32)},
                 key.seed);
      const std::uint64_t next = (left ^ words[0]) & mask;
      left = right;
      right = next;
    }
    value = (left << half) | right;
  } while (value >= static_cast<std::uint64_t>(length));
  return static_cast<index_t>(value);
}

}  // namespace t3d
