#include "hetero/solve/widths.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "core/error.hpp"
#include "hetero/solve/width_bound.hpp"
#include "hetero/solve/width_fluid.hpp"
#include "hetero/solve/width_rounding.hpp"

namespace t3d {
namespace {

constexpr double kExactPoints = 1e6;
constexpr double kAnyTime = std::numeric_limits<double>::max() / 4;
// In visits of a rank, 1 to 3 ns each: how long a solution takes does not depend on the clock.
constexpr index_t kNoLimit = std::numeric_limits<index_t>::max() / 2;
constexpr index_t kFirstSearch = 1'000'000, kSecondSearch = 4'000'000, kBoundSearch = 500'000;
constexpr index_t kRepair = 2'000'000;

class WidthSolver {
 public:
  explicit WidthSolver(const WidthGrid& grid) : grid_(grid) { best_.seconds = kAnyTime; }

  /// Nothing where there are no widths, or none was found.
  std::optional<WidthSolution> solve() {
    if (solve_equal_speeds()) return solution(best_.seconds);
    lower_ = nested_bound(grid_);
    if (std::isinf(lower_)) return std::nullopt;
    const bool many_ranks = grid_.costs.size() > 256;
    keep_even();
    round_fluid(1, 1);
    if (search(lattice_points() <= kExactPoints ? kNoLimit : kFirstSearch))
      return solution(best_.seconds);
    round_fluid(many_ranks ? 3 : 16, many_ranks ? 1 : 4);
    if (search(kSecondSearch)) return solution(best_.seconds);
    if (best_.seconds == kAnyTime) return std::nullopt;
    raise_bound();
    return solution(lower_);
  }

 private:
  /// Then the axes are independent of each other. With no units along an axis there is no work.
  bool solve_equal_speeds() {
    const bool no_work = *std::min_element(grid_.units.begin(), grid_.units.end()) == 0;
    const bool equal = std::all_of(grid_.costs.begin(), grid_.costs.end(),
                                   [&](double cost) { return cost == grid_.costs.front(); });
    if (!equal && !no_work) return false;
    deal_evenly();
    return true;
  }

  void deal_evenly() {
    for (std::size_t axis = 0; axis < 3; ++axis)
      best_.units[axis] = grid_.dealt(axis, std::vector<double>(grid_.parts(axis), 1.0));
    best_.seconds = grid_.seconds(real(best_.units));
  }

  /// Even widths stay unless others are faster.
  void keep_even() {
    deal_evenly();
    if (!std::isfinite(best_.seconds)) best_.seconds = kAnyTime;
  }

  [[nodiscard]] double lattice_points() const {
    return grid_.lattice_points(0) * grid_.lattice_points(1) * grid_.lattice_points(2);
  }
  [[nodiscard]] bool proven() const { return best_.seconds <= lower_ * (1 + kSameTime); }

  /// The `most` best of continuous widths from several starts, rounded in all orders; the `most`
  /// best of those repaired.
  void round_fluid(int starts, std::size_t most) {
    std::vector<RealWidths> fluid = fluid_candidates(grid_, starts);
    fluid.resize(std::min(fluid.size(), most));
    std::vector<WidthsFound> found;
    std::array<std::size_t, 3> order{0, 1, 2};
    do {
      for (const RealWidths& widths : fluid)
        if (auto whole = rounded(grid_, widths, order)) found.push_back(std::move(*whole));
    } while (std::next_permutation(order.begin(), order.end()));
    std::stable_sort(found.begin(), found.end(), [](const WidthsFound& a, const WidthsFound& b) {
      return a.seconds < b.seconds;
    });
    found.resize(std::min(found.size(), most));
    for (WidthsFound& whole : found) {
      repair(grid_, whole, kRepair / static_cast<index_t>(most));
      if (whole.seconds < best_.seconds * (1 - kSameTime)) best_ = whole;
    }
  }

  /// True where the best is proven to be the optimum.
  bool search(index_t operations) {
    if (proven()) return true;
    const SearchResult result = search_widths(grid_, best_.seconds * (1 - kSameTime), operations);
    if (result.best) best_ = *result.best;
    return result.complete || proven();
  }

  /// Bisection over the time within which a search finds nothing.
  void raise_bound() {
    lower_ = std::max(lower_, coarse_bound(grid_, best_.seconds, kBoundSearch));
    for (int round = 0; round < 4 && !proven(); ++round) {
      const double middle = lower_ + (best_.seconds - lower_) / 2;
      const SearchResult result = search_widths(grid_, middle, kBoundSearch);
      if (result.best) best_ = *result.best;
      if (result.complete) lower_ = result.best ? best_.seconds : middle;
    }
  }

  [[nodiscard]] std::optional<WidthSolution> solution(double bound) const {
    if (best_.seconds == kAnyTime) return std::nullopt;
    if (bound >= best_.seconds * (1 - kSameTime))
      return WidthSolution{best_.units, best_.seconds, best_.seconds, true};
    return WidthSolution{best_.units, best_.seconds, bound, false};
  }

  const WidthGrid& grid_;
  WidthsFound best_;
  double lower_ = 0;
};

[[noreturn]] void refuse(const WidthGrid& grid) {
  std::array<index_t, 3> room{};
  for (std::size_t axis = 0; axis < 3; ++axis)
    room[axis] = std::accumulate(grid.most[axis].begin(), grid.most[axis].end(), index_t{0});
  throw_error(ExitCode::config,
              "widths of {} x {} x {} ranks: no way found to place {} x {} x {} units: {} of {} "
              "ranks have speed 0, and the limits allow {} x {} x {} units",
              grid.parts(0), grid.parts(1), grid.parts(2), grid.units[0], grid.units[1],
              grid.units[2],
              std::count_if(grid.costs.begin(), grid.costs.end(),
                            [](double cost) { return std::isinf(cost); }),
              grid.costs.size(), room[0], room[1], room[2]);
}

}  // namespace

WidthSolution solve_widths(const WidthProblem& problem) {
  const WidthGrid grid(problem);
  std::array<std::size_t, 3> order{0, 1, 2};  // the longest axis last: inner loops run along it
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return grid.parts(a) < grid.parts(b); });
  const WidthGrid turned = grid.with_axes(order);
  const std::optional<WidthSolution> solution = WidthSolver(turned).solve();
  if (!solution) refuse(grid);
  WidthSolution result = *solution;
  for (std::size_t axis = 0; axis < 3; ++axis) result.units[order[axis]] = solution->units[axis];
  return result;
}

}  // namespace t3d
