// From the input to the plan, once: weights become widths, "auto" becomes a choice.
#pragma once
#include "config/config_check.hpp"
#include "core/plan.hpp"
#include "hetero/planner/build_plan.hpp"

namespace t3d {

/// What a plan depends on beside the input.
struct PlanFacts {
  int ranks = 1;
  TransportKind transport = TransportKind::host;
  bool gpus = false;  // some rank computes on one
};

[[nodiscard]] PlanRecipe plan_recipe(const Config& config, const PlanFacts& facts);

/// `config` has passed check_against_ranks() for these ranks.
[[nodiscard]] Plan make_plan(const Config& config, const PlanFacts& facts);

/// Gives the keys of `config` that `origins` does not name the values of the plan before, which was
/// made from `before_config`: all of them, and true, where the plan stays because neither the
/// number of ranks nor a given key has changed; else those of aggregation, optimizer and precision.
bool keep_values(Config& config, const Origins& origins, int ranks, const Plan& before,
                 const Config& before_config);

/// The plan of a continued run: the plan before, or a new one, with the values so kept.
[[nodiscard]] Plan continued_plan(const Config& config, const Origins& origins,
                                  const PlanFacts& facts, const Plan& before,
                                  const Config& before_config);

}  // namespace t3d
