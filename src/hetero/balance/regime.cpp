#include "hetero/balance/regime.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/robust.hpp"

namespace t3d {

RegimeTracker::RegimeTracker(const RegimeOptions& options) : options_(options) {
  T3D_CHECK(options.window >= 1 && options.baseline >= options.window && options.confirm >= 1,
            "regime: window {}, baseline {}, confirm {}", options.window, options.baseline,
            options.confirm);
}

Regime RegimeTracker::observe(double seconds, double now_seconds) {
  T3D_CHECK(std::isfinite(seconds) && seconds >= 0, "regime: a step of {} s", seconds);
  now_ = now_seconds;
  const index_t most = options_.window + options_.baseline;
  // Those that leave the sorted range are looked at once more.
  if (std::ssize(kept_) >= 2 * (most + options_.window))
    kept_.erase(kept_.begin(), kept_.end() - most - options_.window);
  kept_.push_back(seconds);
  ++steps_;
  first_ = std::max(first_, steps_ - most);
  judge(seconds, now_seconds);
  return regime();
}

void RegimeTracker::judge(double newest, double now_seconds) {
  const std::span<const double> all = recent();
  if (std::ssize(all) < 2 * options_.window) return take_level(all);
  // Taken once a window: it changes slowly, and thousands of replicas are tracked.
  if (until_refresh_-- == 0) refresh();
  const auto window = all.last(static_cast<std::size_t>(options_.window));
  const double noise = std::max(3 * kMadToDeviation * spread_, options_.least_change * center_);
  // Nearly always most steps of the window are within the noise on both sides, and so its median.
  index_t slower = 0, faster = 0;
  for (const double sample : window) {
    slower += sample - center_ > noise;
    faster += center_ - sample > noise;
  }
  const bool maybe = 2 * std::max(slower, faster) >= options_.window;
  const double change = maybe ? median_of_few(window) - center_ : 0;
  const int side = std::abs(change) <= noise ? 0 : change > 0 ? 1 : -1;
  // The median outlives a burst by two steps; the newest step tells that it is over.
  const bool supported = side != 0 && (newest - center_) / change > 0.5;
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

void RegimeTracker::refresh() {
  const auto sample = [&](index_t step) {
    return kept_[static_cast<std::size_t>(std::ssize(kept_) - (steps_ - step))];
  };
  if (steps_ - sorted_.first() > std::ssize(kept_)) sorted_ = {};
  sorted_.move_to(first_, steps_ - options_.window, sample);
  center_ = sorted_.median();
  spread_ = sorted_.mad(center_);
  until_refresh_ = options_.window - 1;
  if (side_ != 0) return;
  sorted_.move_to(first_, steps_, sample);
  level_ = sorted_.median();
  level_samples_ = steps_ - first_;
  error_ = median_error(sorted_.mad(level_), sorted_.size());
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
  first_ = std::max(first_, steps_ - (options_.window / 2 + options_.confirm));
  side_ = leaning_ = 0;
  agreed_ = 0;
  until_refresh_ = 0;
  take_level(recent());
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
