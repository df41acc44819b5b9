// The checked form of a WidthProblem, and the arithmetic that all solvers of it share.
#pragma once
#include <array>
#include <vector>

#include "hetero/solve/widths.hpp"

namespace t3d {

/// Whole units, or real numbers, by axis and part.
using UnitWidths = std::array<std::vector<index_t>, 3>;
using RealWidths = std::array<std::vector<double>, 3>;
[[nodiscard]] RealWidths real(const UnitWidths& widths);

struct WidthGrid {
  /// Throws Error(config) where numbers are missing or senseless, no rank has any speed, or the
  /// limits of an axis are less than its units.
  explicit WidthGrid(const WidthProblem& problem);

  [[nodiscard]] std::size_t parts(std::size_t axis) const { return most[axis].size(); }
  /// The same problem with axis order[n] as axis n.
  [[nodiscard]] WidthGrid with_axes(const std::array<std::size_t, 3>& order) const;

  /// Of each part along `axis`, the seconds that one unit of it costs under the widths of the other
  /// two axes (its own are not looked at). Parts of width 0 delay nobody.
  [[nodiscard]] std::vector<double> line_costs(std::size_t axis, const RealWidths& widths) const;
  [[nodiscard]] double seconds(const RealWidths& widths) const;
  /// The parts of `axis` that can work under these line costs have room for its units.
  [[nodiscard]] bool has_room(std::size_t axis, const std::vector<double>& line_costs) const;
  /// Best whole units along `axis` for these line costs; there must be room.
  [[nodiscard]] std::vector<index_t> dealt(std::size_t axis,
                                           const std::vector<double>& line_costs) const;
  /// Ways to cut the units of the axis, without limits.
  [[nodiscard]] double lattice_points(std::size_t axis) const;

  std::array<index_t, 3> units;
  UnitWidths most;            // at most the axis' units
  std::vector<double> costs;  // seconds per unit of work, infinity at speed 0; index as the speeds
};

}  // namespace t3d
