// Lower bounds of the seconds of any whole widths.
#pragma once
#include "hetero/solve/width_grid.hpp"

namespace t3d {

/// From lines to slabs to the whole. For each rank line (i, j), the exact min-max c_ij of
/// z_k / s_ijk over whole z: x_i y_j c_ij <= T. For each slab i, that of y_j c_ij, c_i: x_i c_i <=
/// T. Then T is at least the min-max of x_i c_i. The largest of the six orders of the axes. Each
/// line and slab may choose its own widths here, so this is a lower bound, never below the fluid
/// one, X Y Z / (sum of all speeds); infinity where there are no widths at all.
[[nodiscard]] double nested_bound(const WidthGrid& grid);

/// From coarser units: widths z give floor(z / c), which sum to at least (Z - r (c-1)) / c, and the
/// optimum for that many coarse units, searched exactly, times c^3 is not above that of z. The
/// largest for the units that a search of about `operations` visits of a rank decides. `limit`: a
/// time that is reached, so a bound need not be higher.
[[nodiscard]] double coarse_bound(const WidthGrid& grid, double limit, index_t operations);

}  // namespace t3d
