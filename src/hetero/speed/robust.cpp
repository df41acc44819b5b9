#include "hetero/speed/robust.hpp"

#include <algorithm>
#include <cmath>

namespace t3d {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto half = static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), values.begin() + half, values.end());
  const double upper = values[static_cast<std::size_t>(half)];
  if (values.size() % 2 == 1) return upper;
  return (*std::max_element(values.begin(), values.begin() + half) + upper) / 2;
}

double median_deviation(std::span<const double> values) {
  const double middle = median({values.begin(), values.end()});
  std::vector<double> deviations;
  deviations.reserve(values.size());
  for (const double value : values) deviations.push_back(std::abs(value - middle));
  return median(std::move(deviations));
}

double median_error(std::span<const double> values) {
  // 1.4826 MAD estimates the standard deviation; the median's error is sqrt(pi / 2) of the mean's.
  if (values.size() < 2) return 0;
  return 1.2533 * 1.4826 * median_deviation(values) / std::sqrt(static_cast<double>(values.size()));
}

double theil_sen_slope(std::span<const LinePoint> points) {
  std::vector<double> slopes;
  for (std::size_t a = 0; a < points.size(); ++a)
    for (std::size_t b = a + 1; b < points.size(); ++b)
      if (points[a].x != points[b].x)
        slopes.push_back((points[b].y - points[a].y) / (points[b].x - points[a].x));
  return median(std::move(slopes));
}

bool WarmUp::add(double seconds) {
  group_.push_back(seconds);
  if (group_.size() < kGroup) return settled_;
  const double now = median(std::move(group_));
  group_.clear();
  if (last_ > 0 && std::abs(now - last_) < kSettled * last_) settled_ = true;
  last_ = now;
  return settled_;
}

}  // namespace t3d
