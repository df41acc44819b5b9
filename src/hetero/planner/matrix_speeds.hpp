// How whole matrices (Muon) are dealt to the ranks of a cuboid: by what each needs for its part.
// Pure arithmetic.
#pragma once
#include <span>
#include <vector>

#include "hetero/planner/build_plan.hpp"
#include "hetero/speed/speeds.hpp"

namespace t3d {

/// ReplicaPlan::whole of ranks that need `seconds` for the same matrices, by place in the cuboid;
/// infinity = can do none. The fastest has 100. Empty where the slowest needs at most
/// (1 + tolerance) times the seconds of the fastest, or where no rank can do any.
[[nodiscard]] std::vector<index_t> matrix_speeds(std::span<const double> seconds, double tolerance);

/// Sets them for all replicas of the shape, where the optimizer has whole matrices.
void set_matrix_speeds(const PlanRecipe& recipe, const Speeds& speeds, double tolerance,
                       PlanShape& shape);

}  // namespace t3d
