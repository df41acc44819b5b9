// A scaling study as a picture: speed-up with the ideal line on the left; efficiency, waiting and
// imbalance on the right. Bars go from the least to the largest of the repeats; what was measured
// on shared cores, or emulated, is hollow; missing points are said to be.
#pragma once
#include <string>

#include "record/study/study.hpp"

namespace t3d {

/// A whole SVG file; also of a study in which nothing was run yet.
[[nodiscard]] std::string study_plot(const StudyFigures& study);

}  // namespace t3d
