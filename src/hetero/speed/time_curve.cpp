#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "hetero/speed/speeds.hpp"

namespace t3d {
namespace {

bool is_positive(double value) { return std::isfinite(value) && value > 0; }

}  // namespace

TimeCurve TimeCurve::of_rate(double rate) {
  T3D_CHECK(is_positive(rate), "rate {}", rate);
  TimeCurve curve;
  curve.add(rate, 1);
  curve.stated_ = true;
  return curve;
}

void TimeCurve::add(double work, double seconds) {
  T3D_CHECK(is_positive(work) && is_positive(seconds), "work {} in {} s", work, seconds);
  if (stated_) points_.clear();
  stated_ = false;
  std::erase_if(points_, [&](const Point& point) {
    return std::abs(point.work - work) <= 0.01 * std::max(point.work, work);
  });
  const auto after = std::find_if(points_.begin(), points_.end(),
                                  [&](const Point& point) { return point.work > work; });
  points_.insert(after, {work, seconds});
  pool();
}

/// Adjacent violators are averaged until none is left: the nearest nondecreasing curve in least
/// squares (Barlow et al., Statistical Inference under Order Restrictions, 1972).
void TimeCurve::pool() {
  struct Run {
    double sum = 0;
    std::size_t points = 0;
    [[nodiscard]] double mean() const { return sum / static_cast<double>(points); }
  };
  std::vector<Run> runs;
  for (const Point& point : points_) {
    runs.push_back({point.seconds, 1});
    while (runs.size() > 1 && runs[runs.size() - 2].mean() > runs.back().mean()) {
      const Run last = runs.back();
      runs.pop_back();
      runs.back().sum += last.sum;
      runs.back().points += last.points;
    }
  }
  pooled_.clear();
  for (const Run& run : runs) pooled_.insert(pooled_.end(), run.points, run.mean());
}

// Rounding must not make it decrease: hence the order of operations, and lerp.
double TimeCurve::seconds(double work) const {
  if (work <= 0) return 0;
  if (empty()) return std::numeric_limits<double>::infinity();
  const auto after = std::find_if(points_.begin(), points_.end(),
                                  [&](const Point& point) { return point.work >= work; });
  const auto at = static_cast<std::size_t>(after - points_.begin());
  if (at == 0 || at == points_.size()) {
    const std::size_t end = at == 0 ? 0 : at - 1;
    return pooled_[end] * (work / points_[end].work);
  }
  const double part = (work - points_[at - 1].work) / (points_[at].work - points_[at - 1].work);
  return std::lerp(pooled_[at - 1], pooled_[at], part);
}

// Between two points the rate is between theirs.
double TimeCurve::least_seconds(double work) const {
  if (work <= 0) return 0;
  double best = 0;
  for (std::size_t at = 0; at < points_.size(); ++at)
    best = std::max(best, points_[at].work / pooled_[at]);
  return best > 0 ? work / best : std::numeric_limits<double>::infinity();
}

double TimeCurve::trusted(double work) const {
  if (empty()) return 0;
  return stated_ ? work : std::min(work, 2 * points_.back().work);
}

void TimeCurve::scale(double factor) {
  T3D_CHECK(is_positive(factor), "factor {}", factor);
  if (stated_) {
    *this = of_rate(points_.front().work / factor);
    return;
  }
  for (Point& point : points_) point.seconds *= factor;
  pool();
}

}  // namespace t3d
