// A plan's choices as an input.
#pragma once
#include <string>

#include "config/config_load.hpp"
#include "forecast/plan_search.hpp"
#include "forecast/simulate/simulated_job.hpp"

namespace t3d {

/// The input does not say when checkpoints are written.
[[nodiscard]] bool checkpoints_are_free(const Origins& origins);

/// The input with the plan's choices, as a run takes it. `job`: as it was simulated. `plan_file`:
/// where the plan stands whole.
[[nodiscard]] std::string planned_input(Config config, const Origins& origins,
                                        const FoundPlan& found, const SimulatedJob& job,
                                        const std::string& plan_file);

/// The plan as a file: its text, and above it the order of axes where that is not the usual one.
[[nodiscard]] std::string planned_file(const Plan& plan);

}  // namespace t3d
