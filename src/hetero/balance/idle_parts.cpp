#include "hetero/balance/idle_parts.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/robust.hpp"

namespace t3d {
namespace {

constexpr index_t kWindow = 5;  // steps whose median is what a unit takes
/// Of a try: one that fills caches, two that are looked at, one until the report is there.
constexpr double kTrySteps = 4;
constexpr double kWaitPerLoss = 10;
constexpr int kMostDoublings = 4;

double longest_of(std::span<const ReplicaTimes> parts, std::size_t but) {
  double longest = 0;
  for (std::size_t n = 0; n < parts.size(); ++n)
    if (n != but) longest = std::max(longest, parts[n].compute_seconds);
  return longest;
}
constexpr auto kNone = static_cast<std::size_t>(-1);

}  // namespace

IdleParts::IdleParts(std::vector<double> known, index_t least_wait) : least_wait_(least_wait) {
  for (const double seconds : known) parts_.emplace_back().known = seconds;
}

void IdleParts::observe(std::span<ReplicaTimes> parts, std::span<const index_t> units) {
  T3D_CHECK(parts.size() == parts_.size() && units.size() == parts_.size(),
            "{} parts and {} shares for {}", parts.size(), units.size(), parts_.size());
  const double longest = longest_of(parts, kNone);
  bool any_idle = false;
  for (std::size_t n = 0; n < parts.size(); ++n) {
    Part& part = parts_[n];
    any_idle |= units[n] == 0;
    if (units[n] == 0) {
      part.waited += longest;
      continue;
    }
    if (trying()) continue;
    const double seconds = parts[n].compute_seconds - parts[n].fixed_seconds;
    if (!(seconds > 0) || !std::isfinite(seconds)) continue;
    if (std::ssize(part.costs) == kWindow) part.costs.erase(part.costs.begin());
    part.costs.push_back(seconds / double(units[n]));
    part.waited = 0;
    part.tries = 0;
  }
  if (!any_idle) return;
  calibrate(units);
  for (std::size_t n = 0; n < parts.size(); ++n) {
    if (units[n] > 0) continue;
    const double seconds = cost(parts_[n]);
    parts[n].predicted_speed = seconds > 0 && std::isfinite(seconds) ? 1 / seconds : 0;
  }
}

// In the first steps only: later on, others that become slow would seem to slow down idle ones.
void IdleParts::calibrate(std::span<const index_t> units) {
  if (looks_ >= kWindow) return;
  ++looks_;
  std::vector<double> costs, scales;
  for (std::size_t n = 0; n < parts_.size(); ++n) {
    const Part& part = parts_[n];
    if (units[n] == 0 || part.costs.empty()) continue;
    const double middle = median_of(part.costs);
    costs.push_back(middle);
    if (part.known > 0 && std::isfinite(part.known)) scales.push_back(middle / part.known);
  }
  usual_ = median_of(std::move(costs));
  if (!scales.empty()) scale_ = median_of(std::move(scales));
}

double IdleParts::cost(const Part& part) const {
  if (!part.costs.empty()) return median_of(part.costs);
  return part.known > 0 ? part.known * scale_ : usual_;
}

double IdleParts::wait(const Part& part, double fixed, double longest) const {
  const double loss = kTrySteps * std::max(0.0, fixed + cost(part) - longest);
  return std::max(double(least_wait_) * longest, kWaitPerLoss * loss) *
         double(1 << std::min(part.tries, kMostDoublings));
}

std::optional<Shares> IdleParts::due(std::span<const ReplicaTimes> parts,
                                     std::span<const index_t> units, const ShareLimits& limits) {
  const double longest = longest_of(parts, kNone);
  std::size_t taker = kNone, giver = kNone;
  for (std::size_t n = 0; n < parts.size(); ++n) {
    const Part& part = parts_[n];
    if (units[n] == 0) {
      if (parts[n].predicted_speed > 0 && most_of(limits, n) > 0 &&
          part.waited >= wait(part, parts[n].fixed_seconds, longest) &&
          (taker == kNone || cost(part) < cost(parts_[taker])))
        taker = n;
    } else if (units[n] > 1 &&
               (giver == kNone || parts[n].compute_seconds > parts[giver].compute_seconds)) {
      giver = n;
    }
  }
  if (taker == kNone || giver == kNone) return std::nullopt;
  Shares tried(units.begin(), units.end());
  ++tried[taker];
  --tried[giver];
  parts_[taker].waited = 0;
  return tried;
}

void IdleParts::begin(std::span<const index_t> before, std::span<const index_t> after) {
  for (std::size_t n = 0; n < parts_.size(); ++n)
    if (before[n] == 0 && after[n] > 0)
      try_ = Try{n, {before.begin(), before.end()}, {after.begin(), after.end()}, 0, 0};
}

std::optional<Shares> IdleParts::judge(std::span<const ReplicaTimes> parts,
                                       std::span<const index_t> units) {
  if (!try_) return std::nullopt;
  const std::size_t n = try_->part;
  const ReplicaTimes& times = parts[n];
  const bool same = std::equal(units.begin(), units.end(), try_->after.begin());
  if (!same || times.compute_seconds <= longest_of(parts, n)) {
    try_.reset();
    return std::nullopt;
  }
  const double cost = (times.compute_seconds - times.fixed_seconds) / double(units[n]);
  try_->cost = try_->looks == 0 ? cost : std::min(try_->cost, cost);
  if (++try_->looks < 2) return std::nullopt;
  Part& part = parts_[n];
  part.costs.assign(1, try_->cost);
  part.waited = 0;
  ++part.tries;
  Shares before = std::move(try_->before);
  try_.reset();
  return before;
}

}  // namespace t3d
