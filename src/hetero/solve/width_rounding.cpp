#include "hetero/solve/width_rounding.hpp"

#include <algorithm>

#include "hetero/solve/width_fluid.hpp"

namespace t3d {
namespace {

/// Whole units along `axis`, the best for the widths of the other axes.
bool deal(const WidthGrid& grid, std::size_t axis, UnitWidths& units, RealWidths& widths) {
  const std::vector<double> lines = grid.line_costs(axis, widths);
  if (!grid.has_room(axis, lines)) return false;
  units[axis] = grid.dealt(axis, lines);
  widths[axis].assign(units[axis].begin(), units[axis].end());
  return true;
}

bool earlier(double seconds, double than) { return seconds < than * (1 - kSameTime); }

}  // namespace

std::optional<WidthsFound> rounded(const WidthGrid& grid, const RealWidths& widths,
                                   const std::array<std::size_t, 3>& order) {
  RealWidths mixed = widths;
  WidthsFound found;
  std::array<bool, 3> free{true, true, true};
  for (const std::size_t axis : order) {
    if (!deal(grid, axis, found.units, mixed)) return std::nullopt;
    free[axis] = false;
    if (axis != order[2]) follow_norms(grid, mixed, free, 2);
  }
  found.seconds = grid.seconds(mixed);
  settle(grid, found);
  return found;
}

void settle(const WidthGrid& grid, WidthsFound& widths) {
  for (bool better = true; better;) {
    better = false;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      UnitWidths units = widths.units;
      RealWidths trial = real(units);
      if (!deal(grid, axis, units, trial)) continue;
      const double seconds = grid.seconds(trial);
      if (!earlier(seconds, widths.seconds)) continue;
      widths = {units, seconds};
      better = true;
    }
  }
}

namespace {

/// One round of repair(): the best move of one unit.
class BestMove {
 public:
  BestMove(const WidthGrid& grid, const WidthsFound& start, index_t operations)
      : grid_(grid), start_(start), best_(start), operations_(operations) {
    const RealWidths widths = real(start.units);
    for (std::size_t axis = 0; axis < 3; ++axis) try_axis(axis, grid.line_costs(axis, widths));
  }
  [[nodiscard]] const WidthsFound& best() const { return best_; }
  [[nodiscard]] index_t operations_left() const { return operations_; }

 private:
  void try_axis(std::size_t axis, const std::vector<double>& lines) {
    const std::vector<index_t>& units = start_.units[axis];
    for (std::size_t from = 0; from < units.size(); ++from) {
      const double seconds = static_cast<double>(units[from]) * lines[from];
      if (units[from] == 0 || earlier(seconds, start_.seconds)) continue;
      for (std::size_t to = 0; to < units.size() && operations_ > 0; ++to)
        if (to != from && units[to] < grid_.most[axis][to]) try_move(axis, from, to);
    }
  }

  void try_move(std::size_t axis, std::size_t from, std::size_t to) {
    UnitWidths moved = start_.units;
    --moved[axis][from];
    ++moved[axis][to];
    const std::size_t one = (axis + 1) % 3, other = (axis + 2) % 3;
    try_order(moved, one, other);
    if (grid_.parts(one) > 1 && grid_.parts(other) > 1) try_order(moved, other, one);
  }

  void try_order(UnitWidths units, std::size_t first, std::size_t second) {
    RealWidths widths = real(units);
    operations_ -= 3 * std::ssize(grid_.costs);
    if (!deal(grid_, first, units, widths) || !deal(grid_, second, units, widths)) return;
    const double seconds = grid_.seconds(widths);
    if (earlier(seconds, best_.seconds)) best_ = {units, seconds};
  }

  const WidthGrid& grid_;
  const WidthsFound& start_;
  WidthsFound best_;
  index_t operations_;
};

}  // namespace

void repair(const WidthGrid& grid, WidthsFound& widths, index_t operations) {
  while (operations > 0) {
    const BestMove move(grid, widths, operations);
    if (!earlier(move.best().seconds, widths.seconds)) return;
    operations = move.operations_left();
    widths = move.best();
    settle(grid, widths);
  }
}

}  // namespace t3d
