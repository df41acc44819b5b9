#include "hetero/speed/sample_statistics.hpp"

#include <cmath>

namespace t3d {

double theil_sen_slope(std::span<const LinePoint> points) {
  std::vector<double> slopes;
  for (std::size_t a = 0; a < points.size(); ++a)
    for (std::size_t b = a + 1; b < points.size(); ++b)
      if (points[a].x != points[b].x)
        slopes.push_back((points[b].y - points[a].y) / (points[b].x - points[a].x));
  return median_of(std::move(slopes));
}

bool WarmUp::add(double seconds) {
  group_.push_back(seconds);
  if (group_.size() < kGroup) return settled_;
  const double now = median_of(std::move(group_));
  group_.clear();
  if (last_ > 0 && std::abs(now - last_) < kSettled * last_) settled_ = true;
  last_ = now;
  return settled_;
}

}  // namespace t3d
