// CRC32C (Castagnoli) of blocks. Every block's CRC starts from a seed that names the block, so that
// a block of zeros, a block in another's place and a block of an older step do not pass. For one
// CRC width, different seeds over equal data always give different CRCs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace t3d {

inline constexpr index_t kCrcBlockBytes = index_t{1} << 20;

[[nodiscard]] std::uint32_t crc32c(const void* data, std::size_t bytes,
                                   std::uint32_t seed = 0xffffffffU);
[[nodiscard]] std::uint32_t crc32c(std::string_view text, std::uint32_t seed = 0xffffffffU);
/// Seed of block `index` in the data set whose name hashes to `name_seed`.
[[nodiscard]] std::uint32_t block_seed(std::uint32_t name_seed, index_t index);
[[nodiscard]] constexpr index_t crc_blocks(index_t bytes) {
  return (bytes + kCrcBlockBytes - 1) / kCrcBlockBytes;
}

/// CRCs of the blocks of one data set that arrives in pieces, in order.
class BlockCrcs {
 public:
  explicit BlockCrcs(std::uint32_t name_seed) : name_seed_(name_seed) {}
  void add(const void* data, index_t bytes);
  /// Ends the last, short block.
  [[nodiscard]] const std::vector<std::uint32_t>& finish();

 private:
  std::uint32_t name_seed_ = 0, running_ = 0;
  index_t filled_ = 0;  // bytes in the open block
  std::vector<std::uint32_t> crcs_;
};

}  // namespace t3d
