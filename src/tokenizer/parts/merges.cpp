#include "tokenizer/parts/merges.hpp"

#include <algorithm>
#include <array>
#include <queue>
#include <utility>

namespace t3d::tok {
namespace {

constexpr std::size_t kShort = 48;  // symbols; beyond, searching for the minimum takes too long

std::uint64_t key_of(std::int32_t left, std::int32_t right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32U | static_cast<std::uint32_t>(right);
}

}  // namespace

void Merges::add(std::int32_t left, std::int32_t right, std::int32_t rank, std::int32_t merged) {
  if (2 * (used_ + 1) > slots_.size()) {
    const auto old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
    used_ = 0;
    for (const Slot& slot : old)
      if (slot.key != UINT64_MAX)
        add(static_cast<std::int32_t>(slot.key >> 32U), static_cast<std::int32_t>(slot.key),
            slot.merge.rank, slot.merge.merged);
  }
  const std::uint64_t key = key_of(left, right);
  std::size_t slot = slot_of(key);
  while (slots_[slot].key != UINT64_MAX && slots_[slot].key != key)
    slot = (slot + 1) & (slots_.size() - 1);
  if (slots_[slot].key != key) ++used_;
  slots_[slot] = {key, {rank, merged}};
}

Merges::Merge Merges::find(std::int32_t left, std::int32_t right) const {
  const std::uint64_t key = key_of(left, right);
  for (std::size_t slot = slot_of(key);; slot = (slot + 1) & (slots_.size() - 1)) {
    if (slots_[slot].key == key) return slots_[slot].merge;
    if (slots_[slot].key == UINT64_MAX) return {kNone, -1};
  }
}

void Merges::apply(std::vector<std::int32_t>& symbols) const {
  if (symbols.size() <= kShort)
    apply_short(symbols);
  else
    apply_long(symbols);
}

void Merges::apply_short(std::vector<std::int32_t>& symbols) const {
  std::array<Merge, kShort> merges;  // of a symbol and the next one
  std::size_t count = symbols.size();
  const auto look = [&](std::size_t n) {
    merges[n] = n + 1 < count ? find(symbols[n], symbols[n + 1]) : Merge{kNone, -1};
  };
  for (std::size_t n = 0; n < count; ++n) look(n);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t n = 1; n + 1 < count; ++n)
      if (merges[n].rank < merges[best].rank) best = n;
    if (merges[best].rank == kNone) break;
    symbols[best] = merges[best].merged;
    for (std::size_t n = best + 1; n + 1 < count; ++n) {
      symbols[n] = symbols[n + 1];
      merges[n] = merges[n + 1];
    }
    --count;
    look(best);
    if (best > 0) look(best - 1);
  }
  symbols.resize(count);
}

// A linked list of symbols and a heap of the pairs seen; a pair that has changed since is passed
// over when its turn comes.
void Merges::apply_long(std::vector<std::int32_t>& symbols) const {
  struct Candidate {
    std::int32_t rank;
    std::size_t at;
    std::int32_t left, right;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  const std::size_t count = symbols.size();
  std::vector<std::size_t> next(count), previous(count);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto look = [&](std::size_t at) {
    if (next[at] == count) return;
    const std::int32_t left = symbols[at], right = symbols[next[at]];
    const Merge merge = find(left, right);
    if (merge.rank != kNone) queue.push({merge.rank, at, left, right});
  };
  for (std::size_t n = 0; n < count; ++n) {
    next[n] = n + 1;
    previous[n] = n == 0 ? count : n - 1;
  }
  for (std::size_t n = 0; n < count; ++n) look(n);
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    const std::size_t right = symbols[top.at] == top.left ? next[top.at] : count;
    if (right == count || symbols[right] != top.right) continue;
    symbols[top.at] = find(top.left, top.right).merged;
    symbols[right] = -1;  // gone
    next[top.at] = next[right];
    if (next[right] != count) previous[next[right]] = top.at;
    look(top.at);
    if (previous[top.at] != count) look(previous[top.at]);
  }
  symbols.erase(std::remove(symbols.begin(), symbols.end(), -1), symbols.end());
}

}  // namespace t3d::tok
