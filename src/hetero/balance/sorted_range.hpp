// Some neighbours of a series of numbers, kept in order of size: the median of a window that moves
// along the series, without sorting it at every place. The same bits as hetero/robust.hpp gives.
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
  /// Median of the distances from `center`, which lies among the values.
  [[nodiscard]] double mad(double center) const {
    if (values_.empty()) return 0;
    // The nearest first: those below from the middle downwards, the others upwards.
    auto above = std::lower_bound(values_.begin(), values_.end(), center), below = above;
    double nearer = 0, distance = 0;
    for (std::size_t taken = 0; taken < values_.size() / 2 + 1; ++taken) {
      nearer = distance;
      const bool down = above == values_.end() ||
                        (below != values_.begin() &&
                         std::abs(*(below - 1) - center) <= std::abs(*above - center));
      distance = std::abs((down ? *--below : *above++) - center);
    }
    return values_.size() % 2 == 1 ? distance : (distance + nearer) / 2;
  }

 private:
  std::vector<double> values_;  // ascending
  index_t first_ = 0, last_ = 0;
};

}  // namespace t3d
