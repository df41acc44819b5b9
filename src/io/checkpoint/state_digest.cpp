#include "io/checkpoint/state_digest.hpp"

#include <fmt/core.h>

#include <cstddef>
#include <cstring>

#include "comm/agree.hpp"
#include "io/crc32c.hpp"

namespace t3d {
namespace {

/// Odd, and as good as random in its upper bits: all but the last step of Vigna's SplitMix64.
std::uint64_t key_of(std::uint64_t seed, std::uint64_t place) {
  std::uint64_t key = (seed + place) * 0x9e3779b97f4a7c15U;
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9U;
  return (key ^ (key >> 27)) | 1U;
}

template <class Bits>
std::uint64_t digest(std::uint64_t seed, index_t cols, const Box& box, const std::byte* data) {
  std::uint64_t sum = 0;
  for (index_t row = 0; row < box.rows; ++row) {
    auto place = static_cast<std::uint64_t>((box.row0 + row) * cols + box.col0);
    for (index_t col = 0; col < box.cols; ++col, data += sizeof(Bits)) {
      Bits bits = 0;
      std::memcpy(&bits, data, sizeof bits);
      sum += (std::uint64_t{bits} + 1) * key_of(seed, place++);
    }
  }
  return sum;
}

}  // namespace

std::uint64_t digest_of_box(const std::string& tensor, DType type, index_t cols, const Box& box,
                            const void* data) {
  const std::uint64_t seed = (std::uint64_t{crc32c(tensor)} << 32) | crc32c(tensor + "\n");
  const auto* bytes = static_cast<const std::byte*>(data);
  return size_of(type) == 8 ? digest<std::uint64_t>(seed, cols, box, bytes)
                            : digest<std::uint32_t>(seed, cols, box, bytes);
}

std::uint64_t digest_of_parts(const std::vector<TensorPart>& parts, const std::string& without) {
  std::uint64_t sum = 0;
  for (const TensorPart& part : parts) {
    if (!without.empty() && part.name.starts_with(without)) continue;
    const auto* data = static_cast<const std::byte*>(part.data);
    for (const auto& [box, offset] : part.boxes)
      if (!box.empty())
        sum += digest_of_box(part.name, part.dtype, part.cols, box,
                             data + offset * size_of(part.dtype));
  }
  return sum;
}

std::string digest_text(std::uint64_t digest) { return fmt::format("{:016x}", digest); }

bool is_digest(const std::string& text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string whole_digest(Communicator& world, std::uint64_t own) {
  std::uint64_t sum = 0;
  for (const std::string& text : all_gather_texts(world, digest_text(own)))
    sum += std::stoull(text, nullptr, 16);
  return digest_text(sum);
}

}  // namespace t3d
