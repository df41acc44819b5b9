#include "hetero/balance/regime.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "hetero/robust.hpp"

namespace t3d {

RegimeTracker::RegimeTracker(const RegimeOptions& options) : options_(options) {
  T3D_CHECK(options.window >= 1 && options.baseline >= options.window && options.confirm >= 1,
            "regime: window {}, baseline {}, confirm {}", options.window, options.baseline,
            options.confirm);
}

Regime RegimeTracker::observe(double seconds, double now_seconds) {
  T3D_CHECK(std::isfinite(seconds) && seconds >= 0, "regime: a step of {} s", seconds);
  now_ = now_seconds;
  if (std::ssize(samples_) == options_.window + options_.baseline) samples_.erase(samples_.begin());
  samples_.push_back(seconds);
  judge(seconds, now_seconds);
  return regime();
}

void RegimeTracker::judge(double newest, double now_seconds) {
  const index_t before = std::ssize(samples_) - options_.window;
  const std::span<const double> all = samples_;
  if (before < options_.window) return take_level(all);
  // Taken once a window: it changes slowly, and thousands of replicas are tracked.
  if (until_refresh_-- == 0) {
    const auto baseline = all.first(static_cast<std::size_t>(before));
    center_ = median_of(baseline);
    spread_ = mad_of(baseline, center_);
    until_refresh_ = options_.window - 1;
    if (side_ == 0) take_level(all);
  }
  const auto window = all.last(static_cast<std::size_t>(options_.window));
  const double change = median_of(window) - center_;
  const double noise = std::max(3 * kMadToDeviation * spread_, options_.least_change * center_);
  const int side = std::abs(change) <= noise ? 0 : change > 0 ? 1 : -1;
  // The median outlives a burst by two steps; the newest step tells that it is over.
  const bool supported = (newest - center_) / change > 0.5;
  if (side != leaning_) agreed_ = 0;
  leaning_ = side;
  const int was = side_;
  side_ = supported ? side : 0;
  if (side_ == 0) {
    if (was != 0) take_level(all);
    return;
  }
  ++agreed_;
  take_level(window);
  if (agreed_ >= options_.confirm) accept(now_seconds);
}

void RegimeTracker::accept(double now_seconds) {
  const double noise = std::max(3 * kMadToDeviation * spread_, options_.least_change * center_);
  if (side_ > 0 && !slow_) {
    slow_ = true;
    slow_since_ = now_seconds;
    healthy_ = center_;
  } else if (side_ < 0 && level_ <= healthy_ + noise) {
    slow_ = false;
  }
  // The median changed with more than half a window, then came the confirmations.
  const index_t keep = std::min(std::ssize(samples_), options_.window / 2 + options_.confirm);
  samples_.erase(samples_.begin(), samples_.end() - keep);
  side_ = leaning_ = 0;
  agreed_ = 0;
  until_refresh_ = 0;
  take_level(samples_);
}

void RegimeTracker::take_level(std::span<const double> samples) {
  level_ = median_of(samples);
  level_samples_ = std::ssize(samples);
  error_ = median_error(mad_of(samples, level_), samples.size());
}

double RegimeTracker::slower_by() const {
  return slow_ && healthy_ > 0 ? level_ / healthy_ - 1 : 0;
}

Regime RegimeTracker::regime() const {
  if (slow_) {
    const bool long_enough = now_ - slow_since_ >= options_.fail_slow_seconds;
    return long_enough && slower_by() > options_.fail_slow_change ? Regime::fail_slow
                                                                  : Regime::persistent;
  }
  return side_ != 0 ? Regime::suspect : Regime::steady;
}

bool correlated(std::span<const int> sides) {
  const auto suspects = std::ssize(sides) - std::count(sides.begin(), sides.end(), 0);
  return suspects >= 3 && 4 * suspects > std::ssize(sides);
}

}  // namespace t3d
