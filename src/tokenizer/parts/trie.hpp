// Words by their bytes: which of them begin a text.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace t3d::tok {

class Trie {
 public:
  Trie() { root_.fill(0); }
  /// A later word takes the place of an equal one. Not for empty words.
  void add(std::string_view word, std::int32_t value);
  [[nodiscard]] bool may_begin(char byte) const {
    return root_[static_cast<std::uint8_t>(byte)] != 0;
  }
  /// found(bytes, value) for every word that begins text[at...], shortest first.
  template <class Found>
  void each_prefix(std::string_view text, std::size_t at, const Found& found) const {
    std::uint32_t node = 0;
    for (std::size_t end = at; end < text.size();) {
      node = child(node, static_cast<std::uint8_t>(text[end]));
      if (node == 0) return;
      ++end;
      if (values_[node] >= 0) found(end - at, values_[node]);
    }
  }

 private:
  [[nodiscard]] std::uint32_t child(std::uint32_t node, std::uint8_t byte) const {
    if (node == 0) return root_[byte];
    const std::uint64_t key = std::uint64_t{node} << 8U | byte;
    for (std::size_t slot = slot_of(key);; slot = (slot + 1) & (slots_.size() - 1)) {
      if (slots_[slot].key == key) return slots_[slot].child;
      if (slots_[slot].key == 0) return 0;
    }
  }
  [[nodiscard]] std::size_t slot_of(std::uint64_t key) const {
    return (key * 0x9E3779B97F4A7C15ULL >> 32U) & (slots_.size() - 1);
  }
  void put(std::uint64_t key, std::uint32_t child);

  struct Slot {
    std::uint64_t key = 0;  // node and byte; nodes below the root begin at 1
    std::uint32_t child = 0;
  };
  std::array<std::uint32_t, 256> root_{};
  std::vector<Slot> slots_ = std::vector<Slot>(64);  // a power of two, at most half full
  std::size_t used_ = 0;
  std::vector<std::int32_t> values_{-1};  // by node; -1 = no word ends here
};

}  // namespace t3d::tok
