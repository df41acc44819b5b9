// Some neighbours of a series of numbers, kept in order of size: the median of a window that moves
// along the series, without sorting it at every place. The same bits as core/robust.hpp gives.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "core/types.hpp"

namespace t3d {

class SortedRange {
 public:
  /// From now on the numbers first, ..., last - 1 of the series; `at(n)`: its number n, finite,
  /// asked for those that come and go. Cheap where most stay.
  template <class At>
  void move_to(index_t first, index_t last, const At& at) {
    if (first < first_ || last < last_ || first >= last_) {
      values_.clear();
      first_ = last_ = first;
    }
    for (; first_ < first; ++first_)
      values_.erase(std::lower_bound(values_.begin(), values_.end(), at(first_)));
    for (; last_ < last; ++last_) {
      const double value = at(last_);
      values_.insert(std::upper_bound(values_.begin(), values_.end(), value), value);
    }
  }
  [[nodiscard]] index_t first() const { return first_; }
  [[nodiscard]] std::size_t size() const { return values_.size(); }
  [[nodiscard]] double median() const {
    const std::size_t half = values_.size() / 2;
    if (values_.empty()) return 0;
    return values_.size() % 2 == 1 ? values_[half] : (values_[half] + values_[half - 1]) / 2;
  }
  /// Median of the distances from `center`.
  [[nodiscard]] double mad(double center) const {
    if (values_.empty()) return 0;
    // Distances ascend from the center downwards and upwards: the nearest of both together.
    const auto middle = std::lower_bound(values_.begin(), values_.end(), center);
    const auto below = middle - values_.begin(), above = values_.end() - middle;
    const auto down = [&](std::ptrdiff_t n) { return std::abs(*(middle - 1 - n) - center); };
    const auto up = [&](std::ptrdiff_t n) { return std::abs(*(middle + n) - center); };
    const std::ptrdiff_t nearest = std::ssize(values_) / 2 + 1;
    std::ptrdiff_t low = std::max<std::ptrdiff_t>(0, nearest - above);
    for (std::ptrdiff_t high = std::min(nearest, below); low < high;) {
      const std::ptrdiff_t taken = low + (high - low) / 2;  // of those below
      if (up(nearest - taken - 1) <= down(taken))
        high = taken;
      else
        low = taken + 1;
    }
    // The farthest of the nearest, and the one before it.
    std::ptrdiff_t lower = low, upper = nearest - low;
    const auto farthest = [&] {
      const bool is_down = upper == 0 || (lower > 0 && down(lower - 1) >= up(upper - 1));
      return is_down ? down(--lower) : up(--upper);
    };
    const double distance = farthest();
    return values_.size() % 2 == 1 ? distance : (distance + farthest()) / 2;
  }

 private:
  std::vector<double> values_;  // ascending
  index_t first_ = 0, last_ = 0;
};

}  // namespace t3d
