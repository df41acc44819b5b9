// From the input to the plan, once: weights become widths, "auto" becomes a choice.
#pragma once
#include "app/config/config_check.hpp"
#include "core/plan.hpp"

namespace t3d {

/// What a plan depends on beside the input.
struct PlanFacts {
  int ranks = 1;
  TransportKind transport = TransportKind::host;
  bool gpus = false;  // some rank computes on one
};

/// `config` has passed check_against_ranks() for these ranks.
[[nodiscard]] Plan make_plan(const Config& config, const PlanFacts& facts);

/// The plan of a continued run. The plan before stays, where neither the number of ranks nor a key
/// that `origins` says was given has changed against `before_config`; else there is a new one. The
/// reference batch and the number of leaves stay in any case, unless their keys are given.
[[nodiscard]] Plan continued_plan(const Config& config, const Origins& origins,
                                  const PlanFacts& facts, const Plan& before,
                                  const Config& before_config);

}  // namespace t3d
