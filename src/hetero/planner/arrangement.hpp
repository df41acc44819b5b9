// Small plans, better by single exchanges: two ranks change places, or a part of a feature
// dimension gives units to another. Sorted places and widths from a product model are near the best
// of many ranks; of few ranks, whole sequences and heads make other arrangements better.
#pragma once
#include <vector>

#include "hetero/planner/build_plan.hpp"
#include "hetero/speed/speeds.hpp"

namespace t3d {

struct ArrangementLimits {
  std::vector<int> ranks;  // that may have places, by world rank; the places' own among them
  bool places = true;      // ranks may change places
  bool widths = true;      // features may change parts
  int width_trials = 0;    // most; each takes as long as the work of one slab
};

/// `shape` with as much work as recipe.sequences in units of `unit`, or an arrangement in which the
/// slowest slab ends earlier, with its sequences dealt. Messages are not looked at; of memory only
/// what shards at rest elsewhere cannot help. Deterministic: the first exchange that helps is made,
/// in a fixed order, until none helps.
[[nodiscard]] PlanShape better_arrangement(const PlanRecipe& recipe, index_t unit, PlanShape shape,
                                           const Speeds& speeds, const ArrangementLimits& limits);

}  // namespace t3d
