#include "hetero/solve/width_cover.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace t3d {
namespace {

/// Of each part of each axis, what is not in an empty part of another axis.
struct PartSums {
  explicit PartSums(const WidthGrid& grid) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      zeros[axis].assign(grid.parts(axis), 0);
      speeds[axis].assign(grid.parts(axis), 0.0);
    }
    auto cost = grid.costs.begin();
    for (std::size_t i = 0; i < grid.parts(0); ++i)
      for (std::size_t j = 0; j < grid.parts(1); ++j)
        for (std::size_t k = 0; k < grid.parts(2); ++k, ++cost) {
          if (grid.most[0][i] == 0 || grid.most[1][j] == 0 || grid.most[2][k] == 0) continue;
          const std::array<std::size_t, 3> at{i, j, k};
          for (std::size_t axis = 0; axis < 3; ++axis) {
            speeds[axis][at[axis]] += 1 / *cost;
            if (std::isinf(*cost)) ++zeros[axis][at[axis]];
          }
        }
  }
  [[nodiscard]] bool any_zero() const {
    return std::any_of(zeros[0].begin(), zeros[0].end(), [](index_t zero) { return zero > 0; });
  }

  std::array<std::vector<index_t>, 3> zeros;
  std::array<std::vector<double>, 3> speeds;
};

bool has_room_without(const WidthGrid& grid, std::size_t axis, std::size_t part) {
  const auto& most = grid.most[axis];
  return std::accumulate(most.begin(), most.end(), index_t{0}) - most[part] >= grid.units[axis];
}

/// Empties parts of the axes allowed, until no rank of speed 0 is left.
std::optional<WidthGrid> covered(WidthGrid grid, const std::array<bool, 3>& allowed) {
  for (PartSums sums(grid); sums.any_zero(); sums = PartSums(grid)) {
    double best = 0;
    std::size_t best_axis = 0, best_part = 0;
    for (std::size_t axis = 0; axis < 3; ++axis)
      for (std::size_t part = 0; part < grid.parts(axis) && allowed[axis]; ++part) {
        const auto zeros = static_cast<double>(sums.zeros[axis][part]);
        // A part of speed 0 alone costs nothing: before all others, as 1 / 0 is infinite.
        const double gain = zeros == 0 ? 0 : zeros / sums.speeds[axis][part];
        if (gain <= best || !has_room_without(grid, axis, part)) continue;
        best = gain;
        best_axis = axis;
        best_part = part;
      }
    if (best == 0) return std::nullopt;
    grid.most[best_axis][best_part] = 0;
  }
  return grid;
}

}  // namespace

std::vector<WidthGrid> around_speed_zero(const WidthGrid& grid) {
  if (!PartSums(grid).any_zero()) return {grid};
  std::vector<WidthGrid> grids;
  for (const std::array<bool, 3>& allowed : {std::array{true, true, true},
                                             {true, false, false},
                                             {false, true, false},
                                             {false, false, true}})
    if (auto around = covered(grid, allowed)) grids.push_back(std::move(*around));
  return grids;
}

}  // namespace t3d
