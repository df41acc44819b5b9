#include "train/step/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace t3d {

double schedule_factor(const ScheduleConfig& schedule, index_t step, index_t steps) {
  const auto warmup = static_cast<double>(schedule.warmup_steps);
  const auto at = static_cast<double>(step);
  if (at < warmup) return (at + 1) / warmup;
  const double span = std::max(1.0, static_cast<double>(steps) - warmup);
  const double progress = std::min(1.0, (at - warmup) / span);
  const double end = schedule.final_fraction;
  if (schedule.kind == ScheduleKind::linear) return 1 - (1 - end) * progress;
  if (schedule.kind == ScheduleKind::cosine)
    return end + (1 - end) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
  if (schedule.kind == ScheduleKind::wsd) {
    const double start = 1 - schedule.decay_fraction;
    return progress < start ? 1 : 1 - (1 - end) * (progress - start) / schedule.decay_fraction;
  }
  return 1;
}

}  // namespace t3d
