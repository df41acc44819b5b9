#include "hetero/solve/width_grid.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.hpp"
#include "hetero/solve/apportion.hpp"

namespace t3d {
namespace {

constexpr const char* kAxisNames = "ijk";

std::vector<index_t> checked_limits(const WidthProblem& problem, std::size_t axis) {
  const auto parts = static_cast<std::size_t>(problem.cuboid[axis]);
  const index_t units = problem.units[axis];
  T3D_CHECK(units >= 0, "{} units along {}", units, kAxisNames[axis]);
  std::vector<index_t> most = problem.most[axis];
  T3D_CHECK(most.empty() || most.size() == parts, "{} limits of {} parts", most.size(), parts);
  most.resize(parts, units);
  index_t room = 0;
  for (index_t& limit : most) room += limit = std::clamp(limit, index_t{0}, units);
  if (room < units)
    throw_error(ExitCode::config,
                "widths of {} x {} x {} ranks: {} units along axis {}, but the limits of its {} "
                "parts allow only {}",
                problem.cuboid[0], problem.cuboid[1], problem.cuboid[2], units, kAxisNames[axis],
                parts, room);
  return most;
}

double checked_cost(double speed) {
  if (!std::isfinite(speed) || speed < 0)
    throw_error(ExitCode::config, "{} is not a speed (finite and >= 0)", speed);
  return 1 / speed;
}

}  // namespace

RealWidths real(const UnitWidths& widths) {
  RealWidths result;
  for (std::size_t axis = 0; axis < 3; ++axis)
    result[axis].assign(widths[axis].begin(), widths[axis].end());
  return result;
}

WidthGrid::WidthGrid(const WidthProblem& problem) : units(problem.units) {
  const auto& [p, q, r] = problem.cuboid;
  T3D_CHECK(p > 0 && q > 0 && r > 0 && std::ssize(problem.speeds) == p * q * r,
            "{} speeds of {} x {} x {} ranks", problem.speeds.size(), p, q, r);
  for (std::size_t axis = 0; axis < 3; ++axis) most[axis] = checked_limits(problem, axis);
  for (const double speed : problem.speeds) costs.push_back(checked_cost(speed));
  if (std::all_of(costs.begin(), costs.end(), [](double cost) { return std::isinf(cost); }))
    throw_error(ExitCode::config, "widths of {} x {} x {} ranks: all have speed 0", p, q, r);
}

WidthGrid WidthGrid::with_axes(const std::array<std::size_t, 3>& order) const {
  WidthGrid result = *this;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    result.units[axis] = units[order[axis]];
    result.most[axis] = most[order[axis]];
  }
  const std::array<std::size_t, 3> stride{parts(1) * parts(2), parts(2), 1};
  auto cost = result.costs.begin();
  for (std::size_t a = 0; a < result.parts(0); ++a)
    for (std::size_t b = 0; b < result.parts(1); ++b)
      for (std::size_t c = 0; c < result.parts(2); ++c)
        *cost++ = costs[a * stride[order[0]] + b * stride[order[1]] + c * stride[order[2]]];
  return result;
}

std::vector<double> WidthGrid::line_costs(std::size_t axis, const RealWidths& widths) const {
  const auto& [x, y, z] = widths;
  std::vector<double> lines(parts(axis), 0.0);
  const double* cost = costs.data();
  for (std::size_t i = 0; i < parts(0); ++i)
    for (std::size_t j = 0; j < parts(1); ++j, cost += parts(2)) {
      if ((axis != 0 && x[i] == 0) || (axis != 1 && y[j] == 0)) continue;
      if (axis == 2) {
        const double width = x[i] * y[j];
        for (std::size_t k = 0; k < parts(2); ++k) lines[k] = std::max(lines[k], width * cost[k]);
      } else {
        double line = 0;
        for (std::size_t k = 0; k < parts(2); ++k)
          if (z[k] > 0) line = std::max(line, z[k] * cost[k]);
        double& most_of_part = lines[axis == 0 ? i : j];
        most_of_part = std::max(most_of_part, line * (axis == 0 ? y[j] : x[i]));
      }
    }
  return lines;
}

double WidthGrid::seconds(const RealWidths& widths) const {
  const std::vector<double> lines = line_costs(0, widths);
  double most_of_all = 0;
  for (std::size_t i = 0; i < parts(0); ++i)
    if (widths[0][i] > 0) most_of_all = std::max(most_of_all, widths[0][i] * lines[i]);
  return most_of_all;
}

bool WidthGrid::has_room(std::size_t axis, const std::vector<double>& line_costs) const {
  index_t room = 0;
  for (std::size_t n = 0; n < parts(axis); ++n)
    if (std::isfinite(line_costs[n])) room += most[axis][n];
  return room >= units[axis];
}

std::vector<index_t> WidthGrid::dealt(std::size_t axis,
                                      const std::vector<double>& line_costs) const {
  const auto seconds = [&](std::size_t part, index_t width) {
    return static_cast<double>(width) * line_costs[part];
  };
  return min_max_apportion(parts(axis), units[axis], seconds, most[axis]);
}

double WidthGrid::lattice_points(std::size_t axis) const {
  double points = 1;
  for (std::size_t part = 1; part < parts(axis); ++part)
    points *=
        static_cast<double>(units[axis] + static_cast<index_t>(part)) / static_cast<double>(part);
  return points;
}

}  // namespace t3d
