// Memory that keeping gathered operands until the backward pass costs beyond gathering them again.
#pragma once
#include "core/plan.hpp"

namespace t3d {

struct KeepCost {
  index_t weights_bytes = 0, inputs_bytes = 0;
};
/// Of the rank at `coord`, with the plan's largest micro-batch.
[[nodiscard]] KeepCost keep_cost(const Plan& plan, const Coord& coord);
/// The larger of each over all ranks: what is kept is the same everywhere.
[[nodiscard]] KeepCost largest_keep_cost(const Plan& plan);

}  // namespace t3d
