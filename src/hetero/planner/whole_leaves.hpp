// Plans whose leaves keep their samples: with several leaves per replica (Adasum) the speeds of
// ranks may decide where a leaf is, and not what is in it. Pure arithmetic.
#pragma once
#include "hetero/planner/build_plan.hpp"

namespace t3d {

/// As build_plan(); but where replicas have several leaves, these are the leaves of the even plan.
/// Whole ones are dealt to the replicas as nearly in proportion to the sequences of `shape` as the
/// number of leaves that Adasum combines allows; where leaves differ in size, or each has an
/// optimizer of its own (leaf_unit() = 0), they stay where the even plan has them. Slabs share the
/// sequences of their replica by its token speeds. Throws as build_plan().
[[nodiscard]] Plan build_with_whole_leaves(const PlanRecipe& recipe, const PlanShape& shape);

}  // namespace t3d
