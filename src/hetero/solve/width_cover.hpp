// Ranks of speed 0 get no work: on some axis, their part must be empty.
#pragma once
#include "hetero/solve/width_grid.hpp"

namespace t3d {

/// The grid with limits of 0 on parts that together hold all ranks of speed 0: parts of one axis
/// (three ways), and the ones that lose least speed per rank covered, chosen greedily among all
/// axes. Only those whose limits still leave room. The grid alone where no rank has speed 0.
[[nodiscard]] std::vector<WidthGrid> around_speed_zero(const WidthGrid& grid);

}  // namespace t3d
