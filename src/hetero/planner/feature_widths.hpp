// Uneven widths of the feature dimensions of one replica, by the speed of its ranks: for what
// sequences over slabs cannot level out, since slabs are few or mixed.
#pragma once
#include <span>

#include "hetero/planner/build_plan.hpp"

namespace t3d {

/// What one unit of the widths over j is: a key-value group, to which ffn and vocab are cut in
/// proportion, or a lattice step of the feed-forward part, to which the coarser groups are; `both`:
/// as `ffn`, and ffn is dealt anew so that it makes good what whole groups are too much or too few.
enum class WidthLattice { groups, ffn, both };

/// Sets hidden, groups, ffn and vocab of `shape` by the width solver. `speeds`: of the ranks by
/// (i, j, k), in work per second. Throws Error(config) where the solver finds no widths.
void set_feature_widths(const ModelConfig& model, std::span<const double> speeds,
                        WidthLattice lattice, ReplicaShape& shape);

}  // namespace t3d
