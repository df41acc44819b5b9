// From an arrangement of ranks to a plan: sequences dealt to all slabs of all replicas at once so
// that the slowest ends earliest, within the ranks' memory.
#pragma once
#include <string>
#include <vector>

#include "hetero/planner/build_plan.hpp"
#include "hetero/speed/speeds.hpp"

namespace t3d {

struct DealtPlan {
  Plan plan;
  PlanShape shape;       // it was made of this
  std::string shortage;  // why it does not fit into memory; empty where it does
};

/// `shape`: cuboids, places and widths; its sequences and token speeds are found here, and its
/// storage where memory binds. Exact for whole units; with several micro-batches each of them is
/// dealt in these proportions.
[[nodiscard]] DealtPlan dealt_plan(const PlanRecipe& recipe, index_t unit, PlanShape shape,
                                   const Speeds& speeds);

}  // namespace t3d
