// Widths of one cuboid: rank (i,j,k) does x_i y_j z_k of the work, so which integers x, y, z with
// given sums make the slowest rank fastest? Pure and deterministic.
// Sources: Beaumont, Boudet, Rastello, Robert, IEEE TC 50(10), 2001 (heterogeneous grid);
// docs/decisions/011-unequal-ranks.md.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "core/mesh_shape.hpp"

namespace t3d {

/// A fixed arrangement: which rank sits where is decided.
struct WidthProblem {
  Cuboid cuboid{1, 1, 1};
  /// Work units per second of the rank at (i,j,k), index (i q + j) r + k; 0 = can do nothing.
  std::vector<double> speeds;
  /// Units to deal along each axis.
  std::array<index_t, 3> units{1, 1, 1};
  /// Upper limits by axis and part (memory); empty = none.
  std::array<std::vector<index_t>, 3> most;
};

struct WidthSolution {
  std::array<std::vector<index_t>, 3> units;  // sums as asked
  double seconds = 0;                         // max x_i y_j z_k / speed
  /// No integer widths of this arrangement are faster; seconds / bound - 1 is the certified gap.
  double bound = 0;
  bool exact = false;  // bound == seconds, proven by search
};

/// Continuous widths (following norms of the times from low to high order, from several starts),
/// rounded by exact min-max one axis at a time and repaired by moves of single units; then branch
/// and bound, to the end where there are at most 10^6 lattice points, else for a fixed number of
/// operations, which mostly is the end too. Deterministic: equal inputs give equal widths on every
/// machine of equal arithmetic (no time limits, no library functions but the square root); equal
/// speeds give even widths. Throws Error(config) where the limits and the ranks of speed 0 leave no
/// solution, or none was found.
[[nodiscard]] WidthSolution solve_widths(const WidthProblem& problem);

/// Continuous widths (sums 1 per axis) of the arrangement, and their seconds for work 1: the best
/// of several starts, on small grids mostly the optimum. Throws Error(config) where no rank has any
/// speed.
struct FluidWidths {
  std::array<std::vector<double>, 3> widths;
  double seconds = 0;
};
[[nodiscard]] FluidWidths solve_fluid_widths(const Cuboid& cuboid, std::span<const double> speeds);

}  // namespace t3d
