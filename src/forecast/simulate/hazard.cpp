#include "forecast/simulate/hazard.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/error.hpp"

namespace t3d {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kMinute = 1.0 / 60;  // hours
constexpr double kLeastPrior = 1e-4;  // losses per hour of nodes said to be safe
constexpr std::array kHistoryFrom{0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 24.0, 72.0};  // hours

}  // namespace

Hazard Hazard::weibull(double shape, double scale_hours, double flat_hours) {
  T3D_CHECK(shape > 0 && scale_hours > 0 && flat_hours >= 0, "shape {}, scale {} h", shape,
            scale_hours);
  Hazard hazard;
  hazard.shape_ = shape;
  hazard.scale_ = scale_hours;
  hazard.flat_ = flat_hours;
  hazard.flat_sum_ = std::pow(flat_hours / scale_hours, shape);
  return hazard;
}

Hazard Hazard::of_buckets(std::vector<AgeBucket> buckets) {
  T3D_CHECK(!buckets.empty() && buckets.front().from_hours == 0, "the first bucket begins at 0");
  Hazard hazard;
  double sum = 0;
  for (std::size_t at = 0; at < buckets.size(); ++at) {
    if (at > 0) {
      const double hours = buckets[at].from_hours - buckets[at - 1].from_hours;
      T3D_CHECK(hours > 0, "bucket {} does not ascend", at);
      sum += hours * buckets[at - 1].per_hour;
    }
    T3D_CHECK(buckets[at].per_hour >= 0, "bucket {} has {} per hour", at, buckets[at].per_hour);
    hazard.sums_.push_back(sum);
  }
  hazard.buckets_ = std::move(buckets);
  return hazard;
}

double Hazard::per_hour(double age_hours) const {
  if (age_hours < flat_) return flat_sum_ / flat_;
  if (shape_ > 0)
    return shape_ / scale_ * std::pow(std::max(age_hours, kMinute) / scale_, shape_ - 1);
  if (buckets_.empty()) return 0;
  const auto behind =
      std::upper_bound(buckets_.begin(), buckets_.end(), age_hours,
                       [](double age, const AgeBucket& bucket) { return age < bucket.from_hours; });
  return behind == buckets_.begin() ? buckets_.front().per_hour : (behind - 1)->per_hour;
}

double Hazard::cumulative(double age_hours) const {
  if (age_hours < flat_) return flat_sum_ * age_hours / flat_;
  if (shape_ > 0) return std::pow(age_hours / scale_, shape_);
  if (buckets_.empty()) return 0;
  const auto behind =
      std::upper_bound(buckets_.begin() + 1, buckets_.end(), age_hours,
                       [](double age, const AgeBucket& bucket) { return age < bucket.from_hours; });
  const auto at = static_cast<std::size_t>(behind - buckets_.begin()) - 1;
  return sums_[at] + (age_hours - buckets_[at].from_hours) * buckets_[at].per_hour;
}

double Hazard::age_at(double sum) const {
  if (sum < flat_sum_) return flat_ * sum / flat_sum_;
  if (shape_ > 0) return scale_ * std::pow(sum, 1 / shape_);
  if (buckets_.empty()) return kNever;
  const auto behind = std::upper_bound(sums_.begin() + 1, sums_.end(), sum);
  const auto at = static_cast<std::size_t>(behind - sums_.begin()) - 1;
  const double rest = sum - sums_[at];
  if (rest == 0) return buckets_[at].from_hours;
  return buckets_[at].per_hour > 0 ? buckets_[at].from_hours + rest / buckets_[at].per_hour
                                   : kNever;
}

std::optional<Hazard> published_hazard(std::string_view gpu) {
  if (gpu == "K80") return Hazard::weibull(0.32, 110, 1);
  if (gpu == "P100") return Hazard::weibull(0.42, 40, 1);
  if (gpu == "V100") return Hazard::weibull(0.24, 45, 1);
  return std::nullopt;
}

Hazard update_hazard(const Hazard& prior, std::span<const NodeLife> lives, double prior_losses) {
  std::vector<AgeBucket> buckets;
  for (std::size_t at = 0; at < kHistoryFrom.size(); ++at) {
    const double from = kHistoryFrom[at];
    const double to = at + 1 < kHistoryFrom.size() ? kHistoryFrom[at + 1] : kNever;
    double hours = 0, losses = 0;
    for (const NodeLife& life : lives) {
      hours += std::clamp(life.hours - from, 0.0, to - from);
      if (life.lost && life.hours >= from && life.hours < to) ++losses;
    }
    const double end = std::isfinite(to) ? to : 2 * from;
    double mean = (prior.cumulative(end) - prior.cumulative(from)) / (end - from);
    if (!(mean > 0)) mean = kLeastPrior;
    buckets.push_back({from, (prior_losses + losses) / (prior_losses / mean + hours)});
  }
  return Hazard::of_buckets(std::move(buckets));
}

}  // namespace t3d
