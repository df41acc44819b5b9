#include "hetero/solve/width_search.hpp"

#include <algorithm>
#include <limits>

namespace t3d {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

constexpr index_t kNodeOperations = 8;  // a node costs something, however few its ranks

double as_real(index_t units) { return static_cast<double>(units); }

/// Axis 2 is fixed first (outer), then axis 1 (middle), then axis 0 is dealt.
class WidthSearch {
 public:
  WidthSearch(const WidthGrid& grid, double limit, index_t operations)
      : grid_(grid),
        p_(grid.parts(0)),
        q_(grid.parts(1)),
        r_(grid.parts(2)),
        limit_(limit),
        operations_(operations) {
    sum_speeds();
    fixed_outer_.assign(r_ + 1, std::vector<double>(p_ * q_, kNever));
    fixed_middle_.assign(q_ + 1, std::vector<double>(p_, kNever));
    widths_[1].assign(q_, 0);
    widths_[2].assign(r_, 0);
  }

  SearchResult run() {
    outer(0, grid_.units[2]);
    return {std::move(best_), operations_ > 0};
  }

 private:
  void sum_speeds() {
    speeds_.assign(r_, std::vector<double>(p_ * q_));
    after_outer_.assign(r_ + 1, std::vector<double>(p_ * q_, 0));
    outer_speeds_.assign(r_, 0);
    after_middle_.assign(q_ + 1, std::vector<double>(p_, 0));
    for (std::size_t k = r_; k-- > 0;)
      for (std::size_t ij = 0; ij < p_ * q_; ++ij) {
        const double speed = 1 / grid_.costs[ij * r_ + k];
        speeds_[k][ij] = speed;
        after_outer_[k][ij] = after_outer_[k + 1][ij] + speed;
        outer_speeds_[k] += speed;
      }
  }

  /// Most units that part n of the axis does within the limit, at `speed` units per second.
  [[nodiscard]] index_t most_units(std::size_t axis, std::size_t n, double speed) const {
    const index_t most = grid_.most[axis][n];
    const double units = limit_ * speed;
    return units < as_real(most) ? static_cast<index_t>(units) : most;
  }

  /// Calls visit(width) for every width of part n of the axis that leaves a possible rest.
  template <class Speed, class Visit>
  void each_width(std::size_t axis, std::size_t n, index_t rest, const Speed& speed_of,
                  const Visit& visit) {
    index_t later = 0;
    for (std::size_t next = n + 1; next < grid_.parts(axis); ++next)
      later += most_units(axis, next, speed_of(next));
    const index_t high = std::min(rest, most_units(axis, n, speed_of(n)));
    for (index_t width = std::max(rest - later, index_t{0}); width <= high && operations_ > 0;
         ++width) {
      widths_[axis][n] = width;
      visit(width);
    }
  }

  void outer(std::size_t m, index_t rest) {
    if (m == r_) return start_middle();
    const double others = as_real(grid_.units[0]) * as_real(grid_.units[1]);
    const auto speed_of = [&](std::size_t k) { return outer_speeds_[k] / others; };
    each_width(2, m, rest, speed_of, [&](index_t width) {
      operations_ -= static_cast<index_t>(p_ * q_) + kNodeOperations;
      const double share = width > 0 ? 1 / as_real(width) : 0;
      const double* before = fixed_outer_[m].data();
      const double* speeds = speeds_[m].data();
      double* fixed = fixed_outer_[m + 1].data();
      for (std::size_t ij = 0; ij < p_ * q_; ++ij)
        fixed[ij] = share > 0 ? std::min(before[ij], speeds[ij] * share) : before[ij];
      if (rows_and_columns_fit(m + 1, rest - width)) outer(m + 1, rest - width);
    });
  }

  [[nodiscard]] bool rows_and_columns_fit(std::size_t m, index_t rest) {
    rows_.assign(p_, 0);
    columns_.assign(q_, 0);
    const double share = rest > 0 ? 1 / as_real(rest) : kNever;
    for (std::size_t i = 0, ij = 0; i < p_; ++i)
      for (std::size_t j = 0; j < q_; ++j, ++ij) {
        const double fixed = fixed_outer_[m][ij];
        const double e = rest > 0 ? std::min(fixed, after_outer_[m][ij] * share) : fixed;
        rows_[i] += e;
        columns_[j] += e;
      }
    return fits(0, rows_, as_real(grid_.units[1])) && fits(1, columns_, as_real(grid_.units[0]));
  }

  [[nodiscard]] bool fits(std::size_t axis, const std::vector<double>& speeds,
                          double others) const {
    index_t units = 0;
    for (std::size_t n = 0; n < speeds.size(); ++n)
      units += most_units(axis, n, speeds[n] / others);
    return units >= grid_.units[axis];
  }

  void start_middle() {
    const std::vector<double>& speeds = fixed_outer_[r_];
    for (std::size_t j = q_; j-- > 0;)
      for (std::size_t i = 0; i < p_; ++i)
        after_middle_[j][i] = after_middle_[j + 1][i] + speeds[i * q_ + j];
    column_speeds_ = columns_;
    for (double& column : column_speeds_) column /= as_real(grid_.units[0]);
    middle(0, grid_.units[1]);
  }

  void middle(std::size_t m, index_t rest) {
    if (m == q_) return finish();
    const auto speed_of = [&](std::size_t j) { return column_speeds_[j]; };
    each_width(1, m, rest, speed_of, [&](index_t width) {
      operations_ -= static_cast<index_t>(p_) + kNodeOperations;
      index_t units = 0;
      for (std::size_t i = 0; i < p_; ++i) {
        double fixed = fixed_middle_[m][i];
        if (width > 0) fixed = std::min(fixed, fixed_outer_[r_][i * q_ + m] / as_real(width));
        fixed_middle_[m + 1][i] = fixed;
        if (rest > width) fixed = std::min(fixed, after_middle_[m + 1][i] / as_real(rest - width));
        units += most_units(0, i, fixed);
      }
      if (units >= grid_.units[0]) middle(m + 1, rest - width);
    });
  }

  void finish() {
    operations_ -= std::ssize(grid_.costs) + 10 * kNodeOperations;
    RealWidths widths = real(widths_);
    const std::vector<double> lines = grid_.line_costs(0, widths);
    widths_[0] = grid_.dealt(0, lines);
    widths[0].assign(widths_[0].begin(), widths_[0].end());
    const double seconds = grid_.seconds(widths);
    if (seconds > limit_) return;
    best_ = WidthsFound{widths_, seconds};
    limit_ = seconds * (1 - kSameTime);
  }

  const WidthGrid& grid_;
  std::size_t p_, q_, r_;
  double limit_;
  index_t operations_;
  std::vector<std::vector<double>> speeds_;                       // [k][ij]
  std::vector<std::vector<double>> after_outer_, fixed_outer_;    // [m][ij]: k >= m; k < m
  std::vector<std::vector<double>> after_middle_, fixed_middle_;  // [m][i]: j >= m; j < m
  std::vector<double> outer_speeds_, column_speeds_;              // [k]: of the plane; [j]
  std::vector<double> rows_, columns_;                            // [i], [j]: of the last node
  UnitWidths widths_;
  std::optional<WidthsFound> best_;
};

}  // namespace

SearchResult search_widths(const WidthGrid& grid, double limit, index_t operations) {
  std::array<std::size_t, 3> order{0, 1, 2};  // the axis with the most cuts is not enumerated
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return grid.lattice_points(a) > grid.lattice_points(b);
  });
  SearchResult sorted = WidthSearch(grid.with_axes(order), limit, operations).run();
  if (!sorted.best) return sorted;
  SearchResult result = sorted;
  for (std::size_t axis = 0; axis < 3; ++axis)
    result.best->units[order[axis]] = sorted.best->units[axis];
  return result;
}

}  // namespace t3d
