// Learning-rate schedules: warm-up from 0 to 1 over `warmup_steps`, then constant, linear, cosine,
// or warm-up-stable-decay (linear over the last part).
#pragma once
#include "core/config.hpp"

namespace t3d {

/// Factor on optimizer.lr for the update number `step` (0-based) of `steps`.
[[nodiscard]] double schedule_factor(const ScheduleConfig& schedule, index_t step, index_t steps);

}  // namespace t3d
