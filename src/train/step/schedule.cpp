#include "train/step/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace t3d {

double decay_factor(const ScheduleConfig& schedule, double at, double warmup, double steps) {
  const double span = std::max(1.0, steps - warmup);
  const double progress = std::min(1.0, (at - warmup) / span);
  const double end = schedule.final_fraction;
  switch (schedule.kind) {
    case ScheduleKind::linear: return 1 - (1 - end) * progress;
    case ScheduleKind::cosine:
      return end + (1 - end) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
    case ScheduleKind::wsd: {
      const double start = 1 - schedule.decay_fraction;
      return progress < start ? 1 : 1 - (1 - end) * (progress - start) / schedule.decay_fraction;
    }
    case ScheduleKind::constant: break;
  }
  return 1;
}

double schedule_factor(const ScheduleConfig& schedule, index_t step, index_t steps) {
  const auto warmup = static_cast<double>(schedule.warmup_steps);
  const auto at = static_cast<double>(step);
  if (at < warmup) return (at + 1) / warmup;
  return decay_factor(schedule, at, warmup, static_cast<double>(steps));
}

index_t Course::steps_by_tokens(const Progress& progress) const {
  const double left =
      length_.tokens - static_cast<double>(progress.samples) * static_cast<double>(context_);
  return progress.steps + static_cast<index_t>(std::ceil(std::max(0.0, left) / tokens_per_step()));
}

bool Course::ends_by_tokens(const Progress& progress) const {
  return length_.tokens > 0 && (length_.steps == 0 || steps_by_tokens(progress) < length_.steps);
}

index_t Course::steps(const Progress& progress) const {
  return ends_by_tokens(progress) ? steps_by_tokens(progress) : length_.steps;
}

bool Course::ended(const Progress& progress) const { return progress.steps >= steps(progress); }

double Course::factor(const Progress& progress) const {
  if (!ends_by_tokens(progress) || progress.steps < schedule_.warmup_steps)
    return schedule_factor(schedule_, progress.steps, steps(progress));
  // In steps of the present size: whole numbers as long as the size has not changed.
  const auto size = static_cast<double>(sequences_);
  const double warm = progress.warm_samples >= 0 ? static_cast<double>(progress.warm_samples) / size
                                                 : static_cast<double>(schedule_.warmup_steps);
  return decay_factor(schedule_, static_cast<double>(progress.samples) / size, warm,
                      std::ceil(length_.tokens / tokens_per_step()));
}

void Course::advance(Progress& progress, bool updated) const {
  ++progress.steps;
  progress.samples += sequences_;
  if (updated) ++progress.updates;
  if (progress.warm_samples < 0 && progress.steps >= schedule_.warmup_steps)
    progress.warm_samples = schedule_.warmup_steps > 0 ? progress.samples : 0;
}

}  // namespace t3d
