#include "device/page_pool.hpp"

#include <algorithm>
#include <iterator>

namespace t3d {

void PagePool::add(void* data, index_t bytes) {
  bytes_ += bytes;
  auto* const first = static_cast<char*>(data);
  auto next = ranges_.upper_bound(first);
  if (next != ranges_.end() && first + bytes == next->first) {
    bytes += next->second;
    next = ranges_.erase(next);
  }
  if (next != ranges_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == first) {
      before->second += bytes;
      return;
    }
  }
  ranges_.emplace_hint(next, first, bytes);
}

void* PagePool::take(index_t bytes) {
  auto best = ranges_.end();
  for (auto at = ranges_.begin(); at != ranges_.end(); ++at)
    if (at->second >= bytes && (best == ranges_.end() || at->second < best->second)) best = at;
  return best == ranges_.end() ? nullptr : take_from(best, bytes);
}

std::vector<MemoryRange> PagePool::take_ranges(index_t bytes) {
  std::vector<MemoryRange> taken;
  if (bytes > bytes_) return taken;
  while (bytes > 0) {
    const auto largest = std::max_element(ranges_.begin(), ranges_.end(),
                                          [](auto& a, auto& b) { return a.second < b.second; });
    const index_t part = std::min(bytes, largest->second);
    taken.push_back({static_cast<char*>(take_from(largest, part)), part});
    bytes -= part;
  }
  return taken;
}

void* PagePool::take_from(Ranges::iterator range, index_t bytes) {
  const auto [data, size] = *range;
  const auto next = ranges_.erase(range);
  if (size > bytes) ranges_.emplace_hint(next, data + bytes, size - bytes);
  bytes_ -= bytes;
  return data;
}

void PagePool::clear(const std::function<void(MemoryRange)>& release) {
  for (const auto& [data, size] : ranges_) release({data, size});
  ranges_.clear();
  bytes_ = 0;
}

}  // namespace t3d
