// A roofline as a picture, 800 pixels wide: flops per second against flops per byte, both on
// logarithmic scales; the measured roofs, the data sheet's where there is one; a numbered mark for
// each matmul and for each other kind of operator, listed below.
#pragma once
#include <string>

#include "record/study/roofline.hpp"

namespace t3d {

/// What the picture shows: all matmuls, but of the other kinds the shape with most time in a step.
[[nodiscard]] std::vector<RooflinePoint> shown_points(const Roofline& roofline);

/// A whole SVG file. Of a roofline without points or roofs: the title, and that nothing is known.
[[nodiscard]] std::string roofline_plot(const Roofline& roofline);

}  // namespace t3d
