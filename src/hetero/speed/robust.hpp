// Statistics of times on machines that others use too: a few samples may be far too long, so all is
// built on medians. Pure arithmetic.
#pragma once
#include <span>
#include <vector>

namespace t3d {

/// Mean of the middle two where the number is even; 0 of nothing.
[[nodiscard]] double median(std::vector<double> values);
/// Median absolute deviation from the median.
[[nodiscard]] double median_deviation(std::span<const double> values);
/// Standard error of the median, 1.2533 x 1.4826 MAD / sqrt(n): right for normal noise, and not
/// moved by a few outliers. 0 for fewer than two values.
[[nodiscard]] double median_error(std::span<const double> values);

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
