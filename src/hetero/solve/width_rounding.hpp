// From continuous widths to whole ones, and moves of single units that improve those.
#pragma once
#include "hetero/solve/width_search.hpp"

namespace t3d {

/// Whole units along order[0], then order[1], then order[2], each dealt exactly for the widths of
/// the other axes; what is not whole yet is solved again in between. Nothing where speeds of 0 and
/// limits are in the way.
[[nodiscard]] std::optional<WidthsFound> rounded(const WidthGrid& grid, const RealWidths& widths,
                                                 const std::array<std::size_t, 3>& order);

/// Deals one axis after the other exactly, as long as that helps.
void settle(const WidthGrid& grid, WidthsFound& widths);

/// Moves one unit from a part that is last to another part, deals the other axes anew, keeps the
/// best such move, and goes on until none helps or about `operations` visits of a rank are spent.
void repair(const WidthGrid& grid, WidthsFound& widths, index_t operations);

}  // namespace t3d
