#include "hetero/balance/step_trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/robust.hpp"

namespace t3d {
namespace {

constexpr std::size_t kFewest = 3;  // looks that say something of the time before

void append(std::vector<double>& looks, double seconds, index_t window) {
  if (std::ssize(looks) >= window) looks.erase(looks.begin());
  looks.push_back(seconds);
}

}  // namespace

StepTrial::Seconds StepTrial::seconds_of(const std::vector<double>& looks) {
  return {median_of(looks), median_error_of(looks)};
}

void StepTrial::observe(const StepReport& report, std::span<const index_t> shares) {
  if (hold_ > 0) --hold_;
  if (!std::equal(shares.begin(), shares.end(), shares_.begin(), shares_.end())) {
    shares_.assign(shares.begin(), shares.end());
    looks_ = {};
    if (trial_ && trial_->after != shares_) trial_.reset();  // somebody else changed them
  }
  double step = 0;
  for (const RankTimes& rank : report.times) step = std::max(step, rank.step);
  if (!(step > 0) || !std::isfinite(step)) return;
  append(looks_.steps, step, options_.window);
  append(looks_.rests, step - report.max_own_seconds(), options_.window);
}

void StepTrial::begin(std::span<const index_t> next) {
  trial_.reset();
  if (looks_.steps.size() < kFewest) return;
  trial_ = Trial{
      shares_, {next.begin(), next.end()}, seconds_of(looks_.steps), seconds_of(looks_.rests)};
}

std::optional<std::vector<index_t>> StepTrial::judge() {
  if (!trial_ || trial_->after != shares_ || std::ssize(looks_.steps) < options_.window)
    return std::nullopt;
  const Trial trial = *std::exchange(trial_, std::nullopt);
  const Seconds step = seconds_of(looks_.steps), rest = seconds_of(looks_.rests);
  const double noise = std::sqrt(step.error * step.error + trial.step.error * trial.step.error);
  const double longer = step.median - trial.step.median;
  const bool worse = longer > options_.min_gain * trial.step.median + 2 * noise &&
                     2 * (rest.median - trial.rest.median) > longer;
  if (!worse) {
    next_hold_ = 0;
    return std::nullopt;
  }
  next_hold_ = std::clamp(2 * next_hold_, 4 * options_.window, 64 * options_.window);
  hold_ = next_hold_;
  reason_ = fmt::format(
      "roll-back: the whole step took {:.4g} s and takes {:.4g} s since the change, {:.2g} s more "
      "of it without computing",
      trial.step.median, step.median, rest.median - trial.rest.median);
  return trial.before;
}

}  // namespace t3d
