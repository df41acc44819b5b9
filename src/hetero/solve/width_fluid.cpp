#include "hetero/solve/width_fluid.hpp"

#include <algorithm>
#include <cmath>

#include "core/random.hpp"
#include "hetero/solve/width_cover.hpp"

namespace t3d {
namespace {

constexpr int kLastNorm = 10;  // of order 2^10 + 1: within 1 % of the largest time for 4,096 ranks

/// Real widths in proportion to `weights`, with the axis' sum and within its limits.
std::vector<double> share_out(const WidthGrid& grid, std::size_t axis,
                              const std::vector<double>& weights) {
  std::vector<double> widths(weights.size(), 0.0);
  std::vector<bool> full(weights.size(), false);
  auto rest = static_cast<double>(grid.units[axis]);
  for (bool changed = true; changed;) {
    changed = false;
    double sum = 0;
    for (std::size_t n = 0; n < weights.size(); ++n)
      if (!full[n]) sum += weights[n];
    if (!(sum > 0)) return widths;
    const double scale = rest / sum;
    for (std::size_t n = 0; n < weights.size(); ++n) {
      if (full[n]) continue;
      const auto most = static_cast<double>(grid.most[axis][n]);
      widths[n] = scale * weights[n];
      if (widths[n] <= most) continue;
      widths[n] = most;
      full[n] = changed = true;
      rest -= most;
    }
  }
  return widths;
}

/// ratio to the power 2^m + 1
double powered(double ratio, int m) {
  double power = ratio;
  for (int square = 0; square < m; ++square) power *= power;
  return power * ratio;
}

/// For each part of the axis, the sum over its ranks of (seconds per unit / lines[part])^(2^m+1).
std::vector<double> norm_sums(const WidthGrid& grid, std::size_t axis, const RealWidths& widths,
                              const std::vector<double>& lines, int m) {
  const auto& [x, y, z] = widths;
  const std::size_t r = grid.parts(2);
  std::vector<double> sums(lines.size(), 0.0), along_k(r, 0.0);
  const double* cost = grid.costs.data();
  for (std::size_t i = 0; i < grid.parts(0); ++i)
    for (std::size_t j = 0; j < grid.parts(1); ++j, cost += r) {
      const double line = axis == 2 ? 1 : lines[axis == 0 ? i : j];
      const double width = (axis == 0 ? 1 : x[i]) * (axis == 1 ? 1 : y[j]) / line;
      if (width == 0 || !std::isfinite(width)) continue;
      if (axis == 2) {
        for (std::size_t k = 0; k < r; ++k) sums[k] += powered(width * cost[k] / lines[k], m);
      } else {
        for (std::size_t k = 0; k < r; ++k)
          along_k[k] = z[k] > 0 ? powered(width * z[k] * cost[k], m) : 0;
        for (std::size_t k = 0; k < r; ++k) sums[axis == 0 ? i : j] += along_k[k];
      }
    }
  return sums;
}

/// One exact step along one axis; m > kLastNorm: for the largest time itself.
void step(const WidthGrid& grid, std::size_t axis, RealWidths& widths, int m) {
  const std::vector<double> lines = grid.line_costs(axis, widths);
  std::vector<double> weights(lines.size(), 0.0);
  std::vector<double> sums;
  if (m <= kLastNorm) sums = norm_sums(grid, axis, widths, lines, m);
  for (std::size_t n = 0; n < lines.size(); ++n) {
    if (!std::isfinite(lines[n]) || lines[n] == 0) continue;
    double root = 1;
    if (m <= kLastNorm) {
      root = lines[n] * sums[n];
      for (int square = 0; square < m; ++square) root = std::sqrt(root);
    }
    weights[n] = 1 / (lines[n] * root);
  }
  widths[axis] = share_out(grid, axis, weights);
}

/// Even, or for start > 0 with random factors between 1/4 and 5/4.
RealWidths start_widths(const WidthGrid& grid, int start) {
  const RandomKey key{static_cast<std::uint64_t>(start), stream_of("widths")};
  index_t drawn = 0;
  RealWidths widths;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    std::vector<double> weights(grid.parts(axis), 1.0);
    if (start > 0)
      for (double& weight : weights) weight = 0.25 + random_uniform(key, drawn++);
    widths[axis] = share_out(grid, axis, weights);
  }
  return widths;
}

}  // namespace

void follow_norms(const WidthGrid& grid, RealWidths& widths, const std::array<bool, 3>& free,
                  int first) {
  const int cycles = grid.costs.size() <= 256 ? 3 : 1;  // more ranks, smoother norms
  for (int m = first; m <= kLastNorm + 1; ++m)
    for (int cycle = 0; cycle < cycles; ++cycle)
      for (std::size_t axis = 0; axis < 3; ++axis)
        if (free[axis] && grid.parts(axis) > 1) step(grid, axis, widths, m);
}

std::vector<RealWidths> fluid_candidates(const WidthGrid& grid, int starts) {
  std::vector<std::pair<double, RealWidths>> found;
  for (const WidthGrid& around : around_speed_zero(grid))
    for (int start = 0; start < starts; ++start) {
      RealWidths widths = start_widths(around, start);
      follow_norms(around, widths, {true, true, true}, start % 4);
      const double seconds = grid.seconds(widths);
      if (std::isfinite(seconds) && seconds > 0) found.emplace_back(seconds, std::move(widths));
    }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<RealWidths> result;
  for (auto& [seconds, widths] : found) result.push_back(std::move(widths));
  return result;
}

FluidWidths solve_fluid_widths(const Cuboid& cuboid, std::span<const double> speeds) {
  WidthProblem problem;
  problem.cuboid = cuboid;
  problem.speeds.assign(speeds.begin(), speeds.end());
  const WidthGrid grid(problem);  // one unit along each axis
  const auto candidates = fluid_candidates(grid, grid.costs.size() <= 64 ? 32 : 4);
  return {candidates.front(), grid.seconds(candidates.front())};
}

}  // namespace t3d
