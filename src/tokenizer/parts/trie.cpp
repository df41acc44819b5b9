#include "tokenizer/parts/trie.hpp"

#include <utility>

namespace t3d::tok {

void Trie::add(std::string_view word, std::int32_t value) {
  std::uint32_t node = 0;
  for (const char letter : word) {
    const auto byte = static_cast<std::uint8_t>(letter);
    std::uint32_t next = child(node, byte);
    if (next == 0) {
      next = static_cast<std::uint32_t>(values_.size());
      values_.push_back(-1);
      if (node == 0)
        root_[byte] = next;
      else
        put(std::uint64_t{node} << 8U | byte, next);
    }
    node = next;
  }
  values_[node] = value;
}

void Trie::put(std::uint64_t key, std::uint32_t child) {
  if (2 * (used_ + 1) > slots_.size()) {
    const auto old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
    used_ = 0;
    for (const Slot& slot : old)
      if (slot.key != 0) put(slot.key, slot.child);
  }
  std::size_t slot = slot_of(key);
  while (slots_[slot].key != 0) slot = (slot + 1) & (slots_.size() - 1);
  slots_[slot] = {key, child};
  ++used_;
}

}  // namespace t3d::tok
