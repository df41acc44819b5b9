#include "hetero/solve/width_bound.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "hetero/solve/width_search.hpp"

namespace t3d {
namespace {

/// Least possible maximum over the axis of units times line cost; infinity where there is no room.
double least_maximum(const WidthGrid& grid, std::size_t axis, const std::vector<double>& lines) {
  if (!grid.has_room(axis, lines)) return std::numeric_limits<double>::infinity();
  const std::vector<index_t> units = grid.dealt(axis, lines);
  double most = 0;
  for (std::size_t n = 0; n < units.size(); ++n)
    if (units[n] > 0) most = std::max(most, static_cast<double>(units[n]) * lines[n]);
  return most;
}

double nested_in_this_order(const WidthGrid& grid) {
  std::vector<double> slabs, lines, line(grid.parts(2));
  auto cost = grid.costs.begin();
  for (std::size_t i = 0; i < grid.parts(0); ++i) {
    lines.clear();
    for (std::size_t j = 0; j < grid.parts(1); ++j, cost += std::ssize(line)) {
      std::copy_n(cost, line.size(), line.begin());
      lines.push_back(least_maximum(grid, 2, line));
    }
    slabs.push_back(least_maximum(grid, 1, lines));
  }
  return least_maximum(grid, 0, slabs);
}

/// Limits and units in coarser units; nothing where too few are left to say anything.
std::optional<WidthGrid> coarser(WidthGrid grid, index_t coarse) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto parts = static_cast<index_t>(grid.parts(axis));
    const index_t sum = grid.units[axis] - parts * (coarse - 1);
    if (sum < 4 * coarse * parts && parts > 1) return std::nullopt;
    grid.units[axis] = parts > 1 ? (sum + coarse - 1) / coarse : grid.units[axis];
    for (index_t& most : grid.most[axis])
      if (parts > 1) most /= coarse;
  }
  return grid;
}

}  // namespace

double nested_bound(const WidthGrid& grid) {
  double bound = 0;
  std::array<std::size_t, 3> order{0, 1, 2};
  do bound = std::max(bound, nested_in_this_order(grid.with_axes(order)));
  while (std::next_permutation(order.begin(), order.end()));
  return bound;
}

double coarse_bound(const WidthGrid& grid, double limit, index_t operations) {
  double bound = 0;
  for (index_t coarse = 64; coarse > 1; coarse /= 2) {
    const std::optional<WidthGrid> coarser_grid = coarser(grid, coarse);
    if (!coarser_grid) continue;
    double scale = 1;
    for (std::size_t axis = 0; axis < 3; ++axis)
      if (grid.parts(axis) > 1) scale *= static_cast<double>(coarse);
    const SearchResult result = search_widths(*coarser_grid, limit / scale, operations);
    if (!result.complete) break;
    bound = std::max(bound, result.best ? result.best->seconds * scale : limit);
  }
  return bound;
}

}  // namespace t3d
