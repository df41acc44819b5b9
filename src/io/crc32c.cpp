#include "io/crc32c.hpp"

#include <isa-l/crc.h>

#include <algorithm>

namespace t3d {

std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t seed) {
  constexpr std::size_t kMost = std::size_t{1} << 30;  // the library counts in int
  // The library's prototype lacks const; it only reads.
  auto* at = const_cast<unsigned char*>(static_cast<const unsigned char*>(data));
  while (bytes > 0) {
    const std::size_t now = std::min(bytes, kMost);
    seed = crc32_iscsi(at, static_cast<int>(now), seed);
    at += now;
    bytes -= now;
  }
  return seed;
}

std::uint32_t crc32c(std::string_view text, std::uint32_t seed) {
  return crc32c(text.data(), text.size(), seed);
}

std::uint32_t block_seed(std::uint32_t name_seed, index_t index) {
  return crc32c(&index, sizeof index, name_seed);
}

void BlockCrcs::add(const void* data, index_t bytes) {
  const auto* at = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    if (filled_ == 0) running_ = block_seed(name_seed_, static_cast<index_t>(crcs_.size()));
    const index_t now = std::min(bytes, kCrcBlockBytes - filled_);
    running_ = crc32c(at, static_cast<std::size_t>(now), running_);
    filled_ += now;
    at += now;
    bytes -= now;
    if (filled_ == kCrcBlockBytes) {
      crcs_.push_back(running_);
      filled_ = 0;
    }
  }
}

const std::vector<std::uint32_t>& BlockCrcs::finish() {
  if (filled_ > 0) crcs_.push_back(running_);
  filled_ = 0;
  return crcs_;
}

}  // namespace t3d
