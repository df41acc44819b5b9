// The plot of a run by rank, for people: who takes how long, what for, and what a change of plan
// did. An SVG file that any browser shows, without scripts or fonts of its own.
//
//   upper panel   own milliseconds over the steps: a line per rank for up to kMostLines ranks, for
//                 more a band from the fastest to the slowest with the median; the step's time
//                 dashed; changes of plan as vertical lines with their texts
//   lower panel   mean over the last third of the run: a bar per rank, matmul + attention + other +
//                 waiting (the step without the own time); of more than 64 ranks 64, evenly from
//                 the fastest to the slowest
#pragma once
#include <string>

#include "record/log/rank_history.hpp"
#include "record/log/svg.hpp"

namespace t3d {

inline constexpr int kPlotWidth = 900, kPlotHeight = 560;
inline constexpr std::size_t kMostLines = 16, kMostBars = 64;

/// Where the two panels are: values of 0 are on the lower edges, the first and the last gathered
/// step on the left and the right edge of the upper one.
inline constexpr SvgFrame kStepsFrame{66, 82, 650, 232}, kBarsFrame{66, 396, 650, 112};

/// The whole file. Times are in ms, or in s where a step takes 10 s or more. A few steps that are
/// far longer than the others go beyond the upper panel's edge, and a line says so.
[[nodiscard]] std::string rank_plot(const RankHistory& history, const std::string& title);

}  // namespace t3d
