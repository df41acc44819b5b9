// Changes of plan that the input asks for: debug.replan = ["5:same", "10:other.toml"].
#pragma once
#include <string>
#include <vector>

#include "core/plan.hpp"

namespace t3d {

struct Replan {
  index_t step = 0;  // after this step
  Plan plan;
};
/// "STEP:FILE", or "STEP:same" for the run's own plan `now`. Errors name debug.replan: config, also
/// where the plan changes more than shape, places, widths, shares and what is kept in memory;
/// no_input or io where the file cannot be read.
[[nodiscard]] Replan parse_replan(const std::string& text, const Plan& now);
/// All of debug.replan. Error(config) also where two are after the same step.
[[nodiscard]] std::vector<Replan> parse_replans(const std::vector<std::string>& texts,
                                                const Plan& now);

/// The plan of a file in place of `now`: mesh.plan and debug.replan. Errors name `key`.
[[nodiscard]] Plan plan_instead(const std::string& key, const std::string& file, const Plan& now);

}  // namespace t3d
