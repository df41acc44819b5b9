// PagePool: memory of freed blocks, joined where they touch, from which blocks of other sizes are
// cut. Its pages have been touched: a new shape that is built from them pays no page faults, which
// cost more than moving its state.
#pragma once
#include <functional>
#include <map>
#include <vector>

#include "core/types.hpp"

namespace t3d {

struct MemoryRange {
  char* data = nullptr;
  index_t bytes = 0;
};

class PagePool {
 public:
  [[nodiscard]] index_t bytes() const { return bytes_; }
  void add(void* data, index_t bytes);
  /// The front of the smallest range that is large enough; nullptr where none is.
  [[nodiscard]] void* take(index_t bytes);
  /// `bytes` in several ranges, the largest first; nothing where there are fewer.
  [[nodiscard]] std::vector<MemoryRange> take_ranges(index_t bytes);
  /// Gives up all ranges, each through `release`.
  void clear(const std::function<void(MemoryRange)>& release);

 private:
  using Ranges = std::map<char*, index_t>;  // by address; no two of them touch
  void* take_from(Ranges::iterator range, index_t bytes);

  Ranges ranges_;
  index_t bytes_ = 0;
};

}  // namespace t3d
