// Statistics of times on machines that others use too: a few samples may be far too long, so all is
// built on medians. Pure arithmetic.
#pragma once
#include <span>
#include <vector>

#include "core/robust.hpp"

namespace t3d {

struct LinePoint {
  double x = 0, y = 0;
};
/// Median of the slopes between all pairs with different x (Theil 1950, Sen 1968); 0 where there is
/// no such pair.
[[nodiscard]] double theil_sen_slope(std::span<const LinePoint> points);

/// Whether clocks, caches and heat have settled: the medians of two successive groups of five
/// samples differ by less than 1 %.
class WarmUp {
 public:
  static constexpr std::size_t kGroup = 5;
  static constexpr double kSettled = 0.01;
  /// True from the sample on that settles it.
  bool add(double seconds);

 private:
  std::vector<double> group_;
  double last_ = 0;  // median of the group before; 0 = none
  bool settled_ = false;
};

}  // namespace t3d
