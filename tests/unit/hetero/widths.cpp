// Whole widths of one cuboid against plain enumeration, the bounds against the optimum, and the
// continuous ones against the vertices of their polyhedron.
#include "hetero/solve/widths.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.hpp"
#include "core/partition.hpp"
#include "core/random.hpp"
#include "hetero/solve/width_bound.hpp"
#include "hetero/solve/width_search.hpp"
#include "support/catch.hpp"

namespace t3d::test {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kClose = 1e-11;

class Draw {
 public:
  explicit Draw(std::string_view stream) : key_{11, stream_of(stream)} {}
  index_t below(index_t end) { return random_bits(key_, drawn_++) % end; }
  double uniform() { return random_uniform(key_, drawn_++); }

 private:
  RandomKey key_;
  index_t drawn_ = 0;
};

/// Uniform from 1 to 4, three classes, a few slow ones, or very unlike; with some of speed 0.
double random_speed(Draw& draw, index_t kind) {
  constexpr std::array classes{1.0, 2.2, 3.2};
  if (kind == 0) return 1 + 3 * draw.uniform();
  if (kind == 1) return classes[static_cast<std::size_t>(draw.below(3))];
  if (kind == 2) return draw.below(8) == 0 ? 0.2 : 1;
  if (kind == 3) return std::pow(10, draw.uniform());
  return draw.below(5) == 0 ? 0 : 1 + draw.uniform();
}

WidthProblem random_problem(Draw& draw, const Cuboid& cuboid, index_t most_units) {
  WidthProblem problem;
  problem.cuboid = cuboid;
  const index_t kind = draw.below(5);
  for (index_t rank = 0; rank < cuboid[0] * cuboid[1] * cuboid[2]; ++rank)
    problem.speeds.push_back(random_speed(draw, kind));
  for (index_t& units : problem.units) units = 1 + draw.below(most_units);
  return problem;
}

void add_limits(Draw& draw, WidthProblem& problem) {
  for (std::size_t axis = 0; axis < 3; ++axis)
    for (index_t part = 0; part < problem.cuboid[axis]; ++part)
      problem.most[axis].push_back(draw.below(problem.units[axis] + 2));
}

/// All ways to cut `units` within the limits.
void each_cut(std::vector<index_t>& cut, std::size_t part, index_t units,
              const std::vector<index_t>& most, std::vector<std::vector<index_t>>& all) {
  if (part + 1 == cut.size()) {
    cut[part] = units;
    if (most.empty() || units <= most[part]) all.push_back(cut);
    return;
  }
  for (index_t width = 0; width <= units; ++width) {
    if (!most.empty() && width > most[part]) break;
    cut[part] = width;
    each_cut(cut, part + 1, units - width, most, all);
  }
}

double seconds_of(const WidthProblem& problem, const UnitWidths& units) {
  double most = 0;
  auto speed = problem.speeds.begin();
  for (const index_t x : units[0])
    for (const index_t y : units[1])
      for (const index_t z : units[2]) {
        if (x * y * z > 0) most = std::max(most, static_cast<double>(x * y * z) / *speed);
        ++speed;
      }
  return most;
}

double enumerated(const WidthProblem& problem) {
  std::array<std::vector<std::vector<index_t>>, 3> cuts;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    std::vector<index_t> cut(static_cast<std::size_t>(problem.cuboid[axis]));
    each_cut(cut, 0, problem.units[axis], problem.most[axis], cuts[axis]);
  }
  double best = kNever;
  for (const auto& x : cuts[0])
    for (const auto& y : cuts[1])
      for (const auto& z : cuts[2]) best = std::min(best, seconds_of(problem, {x, y, z}));
  return best;
}

/// Sums, limits, and that the seconds are those of the widths.
void check_widths(const WidthProblem& problem, const WidthSolution& solution) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto& units = solution.units[axis];
    REQUIRE(std::ssize(units) == problem.cuboid[axis]);
    REQUIRE(std::accumulate(units.begin(), units.end(), index_t{0}) == problem.units[axis]);
    for (std::size_t part = 0; part < units.size(); ++part) {
      REQUIRE(units[part] >= 0);
      if (!problem.most[axis].empty()) REQUIRE(units[part] <= problem.most[axis][part]);
    }
  }
  REQUIRE(solution.seconds == Approx(seconds_of(problem, solution.units)).epsilon(kClose));
  REQUIRE(solution.bound <= solution.seconds);
  REQUIRE(solution.exact == (solution.bound == solution.seconds));
}

bool refused(const WidthProblem& problem) {
  try {
    (void)solve_widths(problem);
  } catch (const Error& error) {
    return error.code() == ExitCode::config;
  }
  return false;
}

constexpr std::array kSmall{Cuboid{2, 2, 2}, Cuboid{3, 2, 1}, Cuboid{1, 3, 2}, Cuboid{2, 1, 3},
                            Cuboid{4, 1, 1}, Cuboid{2, 3, 2}, Cuboid{1, 1, 1}, Cuboid{3, 3, 1}};

TEST_CASE("no other whole widths are faster", "[widths]") {
  Draw draw("enumerated");
  index_t infeasible = 0;
  for (index_t round = 0; round < 600; ++round) {
    const Cuboid cuboid = kSmall[static_cast<std::size_t>(round) % kSmall.size()];
    WidthProblem problem = random_problem(draw, cuboid, 9);
    if (draw.below(2) == 0) add_limits(draw, problem);
    if (std::all_of(problem.speeds.begin(), problem.speeds.end(), [](double s) { return s == 0; }))
      continue;
    INFO("round " << round);
    const double best = enumerated(problem);
    if (best == kNever) {
      ++infeasible;
      REQUIRE(refused(problem));
      continue;
    }
    const WidthSolution solution = solve_widths(problem);
    check_widths(problem, solution);
    REQUIRE(solution.exact);
    REQUIRE(solution.seconds == Approx(best).epsilon(kClose));
    REQUIRE(nested_bound(WidthGrid(problem)) <= best * (1 + kClose));
  }
  CHECK(infeasible > 20);
}

/// The search alone, without a good start, and under a limit that cuts off.
TEST_CASE("a search finds the optimum from any limit above it, and nothing below", "[widths]") {
  Draw draw("search");
  for (index_t round = 0; round < 200; ++round) {
    const Cuboid cuboid = kSmall[static_cast<std::size_t>(round) % kSmall.size()];
    const WidthProblem problem = random_problem(draw, cuboid, 8);
    const double best = enumerated(problem);
    if (best == kNever) continue;
    const WidthGrid grid(problem);
    for (const double factor : {1.0001, 1.5, 1e6}) {
      const SearchResult found = search_widths(grid, best * factor, 1 << 30);
      REQUIRE(found.complete);
      REQUIRE(found.best);
      REQUIRE(found.best->seconds == Approx(best).epsilon(kClose));
      REQUIRE(seconds_of(problem, found.best->units) == Approx(best).epsilon(kClose));
    }
    const SearchResult none = search_widths(grid, best * 0.9999, 1 << 30);
    REQUIRE((none.complete && !none.best));
  }
}

TEST_CASE("beyond a million lattice points: near the optimum, and the bounds hold", "[widths]") {
  constexpr std::array cuboids{Cuboid{2, 2, 2}, Cuboid{3, 3, 2}, Cuboid{6, 3, 1},
                               Cuboid{2, 3, 3}, Cuboid{4, 4, 1}, Cuboid{4, 2, 2}};
  Draw draw("beyond");
  double sum = 0, worst = 0;
  index_t cases = 0;
  while (cases < 60) {
    const Cuboid cuboid = cuboids[static_cast<std::size_t>(cases) % cuboids.size()];
    const WidthProblem problem = random_problem(draw, cuboid, 120);
    const WidthGrid grid(problem);
    if (grid.lattice_points(0) * grid.lattice_points(1) * grid.lattice_points(2) <= 1e6) continue;
    ++cases;
    const WidthSolution solution = solve_widths(problem);
    check_widths(problem, solution);
    const double start = solution.seconds * (1 - kSameTime);
    const SearchResult better = search_widths(grid, start, index_t{1} << 40);
    REQUIRE(better.complete);
    const double best = better.best ? better.best->seconds : solution.seconds;
    REQUIRE(solution.bound <= best * (1 + kClose));
    REQUIRE(nested_bound(grid) <= best * (1 + kClose));
    REQUIRE(coarse_bound(grid, solution.seconds, 1 << 20) <= best * (1 + kClose));
    sum += solution.seconds / best - 1;
    worst = std::max(worst, solution.seconds / best - 1);
  }
  CHECK(sum / 60 <= 0.005);
  CHECK(worst <= 0.03);
}

TEST_CASE("a coarse bound is close where units are many", "[widths]") {
  WidthProblem problem;
  problem.cuboid = {2, 2, 2};
  problem.speeds = {4, 1, 2, 3, 1, 1, 3, 4};
  problem.units = {20000, 20000, 20000};
  const WidthSolution solution = solve_widths(problem);
  CHECK(solution.bound < solution.seconds);
  CHECK(solution.bound > 0.97 * solution.seconds);
}

TEST_CASE("equal speeds give the even widths", "[widths]") {
  for (const Cuboid& cuboid : {Cuboid{4, 2, 2}, Cuboid{3, 5, 7}, Cuboid{16, 16, 16}})
    for (const index_t units : {1, 12, 100}) {
      WidthProblem problem;
      problem.cuboid = cuboid;
      problem.units = {units, 2 * units + 1, 768};
      problem.speeds.assign(static_cast<std::size_t>(cuboid[0] * cuboid[1] * cuboid[2]), 0.7);
      const WidthSolution solution = solve_widths(problem);
      check_widths(problem, solution);
      CHECK(solution.exact);
      for (std::size_t axis = 0; axis < 3; ++axis)
        CHECK(solution.units[axis] ==
              Partition::even("x", problem.units[axis], cuboid[axis]).sizes());
    }
}

/// Slabs of equal ranks, and one slow rank: what a reader can work out.
TEST_CASE("known optima", "[widths]") {
  WidthProblem slabs;
  slabs.cuboid = {3, 2, 1};
  slabs.units = {64, 10, 5};
  slabs.speeds = {1, 1, 2.2, 2.2, 3.2, 3.2};
  CHECK(solve_widths(slabs).units == UnitWidths{{{10, 22, 32}, {5, 5}, {5}}});

  WidthProblem one_dead;  // the longest axis gives up a part
  one_dead.cuboid = {4, 2, 2};
  one_dead.units = {12, 4, 4};
  one_dead.speeds.assign(16, 1);
  one_dead.speeds[7] = 0;
  CHECK(solve_widths(one_dead).units == UnitWidths{{{4, 0, 4, 4}, {2, 2}, {2, 2}}});

  WidthProblem nothing = one_dead;
  nothing.units = {12, 0, 4};
  CHECK(solve_widths(nothing).seconds == 0);
  CHECK(solve_widths(nothing).units == UnitWidths{{{3, 3, 3, 3}, {0, 0}, {2, 2}}});
}

TEST_CASE("at 4,096 ranks dead ranks on all axes are planned around", "[widths]") {
  WidthProblem problem;
  problem.cuboid = {16, 16, 16};
  problem.units = {128, 128, 128};
  Draw draw("dead");
  for (index_t rank = 0; rank < 4096; ++rank) problem.speeds.push_back(1 + 0.1 * draw.uniform());
  for (std::size_t n = 0; n < 16; ++n) problem.speeds[(n * 16 + 3) * 16 + 5] = 0;  // a whole line
  problem.speeds[9 * 256] = 0;
  const WidthSolution solution = solve_widths(problem);
  check_widths(problem, solution);
  // Losing the part j = 3 (or k = 5) and the part i = 9 costs two parts of 16.
  CHECK(solution.seconds < 1.1 * 128 * 128 * 128 / (4096 * 14.0 / 16));
  CHECK(solve_widths(problem).units == solution.units);
}

TEST_CASE("impossible widths are refused with the sums", "[widths]") {
  WidthProblem problem;
  problem.cuboid = {2, 1, 2};
  problem.units = {8, 3, 4};
  problem.speeds = {1, 0, 0, 1};
  problem.most[0] = {4, 3};
  CHECK_THROWS_WITH(solve_widths(problem),
                    "widths of 2 x 1 x 2 ranks: 8 units along axis i, but "
                    "the limits of its 2 parts allow only 7");
  problem.most[0] = {4, 4};  // all of both is needed, but then rank (0,0,1) or (1,0,0) has work
  CHECK_THROWS_WITH(solve_widths(problem),
                    "widths of 2 x 1 x 2 ranks: no way found to place 8 x 3 x 4 units: 2 of 4 "
                    "ranks have speed 0, and the limits allow 8 x 3 x 8 units");
  problem.most[0] = {8, 3};
  CHECK(solve_widths(problem).units == UnitWidths{{{8, 0}, {3}, {4, 0}}});
  problem.speeds = {0, 0, 0, 0};
  CHECK_THROWS_WITH(solve_widths(problem), contains("all have speed 0"));
  problem.speeds[2] = -1;
  CHECK_THROWS_WITH(solve_widths(problem), contains("-1 is not a speed"));
}

/// The best vertex of x_i + y_j + z_k <= log s_ijk (2 x 2 x 2): all choices of four tight rows,
/// with x_0 = z_0 = 0 instead of the two scales that are free.
double best_vertex(const std::vector<double>& speeds) {
  double best = 0;
  for (unsigned tight = 0; tight < 256; ++tight) {
    if (std::popcount(tight) != 4) continue;
    std::vector<std::array<double, 5>> rows;  // x_1, y_0, y_1, z_1 | log s
    for (unsigned n = 0; n < 8; ++n)
      if (((tight >> n) & 1U) != 0) {
        const bool i = (n & 4U) != 0, j = (n & 2U) != 0, k = (n & 1U) != 0;
        rows.push_back({i ? 1.0 : 0, j ? 0 : 1.0, j ? 1.0 : 0, k ? 1.0 : 0, std::log(speeds[n])});
      }
    bool singular = false;
    for (std::size_t c = 0; c < 4 && !singular; ++c) {  // Gauss and Jordan
      std::size_t pivot = c;
      for (std::size_t n = c; n < 4; ++n)
        if (std::abs(rows[n][c]) > std::abs(rows[pivot][c])) pivot = n;
      std::swap(rows[c], rows[pivot]);
      singular = std::abs(rows[c][c]) < 1e-9;
      for (std::size_t n = 0; n < 4 && !singular; ++n) {
        const double factor = rows[n][c] / rows[c][c];
        for (std::size_t m = 0; m < 5 && n != c; ++m) rows[n][m] -= factor * rows[c][m];
      }
    }
    if (singular) continue;
    std::array<double, 4> v;
    for (std::size_t n = 0; n < 4; ++n) v[n] = std::exp(rows[n][4] / rows[n][n]);
    const std::array<double, 2> x{1, v[0]}, y{v[1], v[2]}, z{1, v[3]};
    bool allowed = true;
    for (unsigned n = 0; n < 8; ++n)
      allowed = allowed && x[n >> 2] * y[(n >> 1) & 1U] * z[n & 1U] <= speeds[n] * (1 + 1e-9);
    if (allowed) best = std::max(best, (x[0] + x[1]) * (y[0] + y[1]) * (z[0] + z[1]));
  }
  return best;
}

TEST_CASE("continuous widths are near the best vertex", "[widths]") {
  Draw draw("vertices");
  double sum = 0;
  for (int round = 0; round < 60; ++round) {
    std::vector<double> speeds;
    for (int rank = 0; rank < 8; ++rank) speeds.push_back(random_speed(draw, round % 4));
    const FluidWidths fluid = solve_fluid_widths({2, 2, 2}, speeds);
    for (const auto& widths : fluid.widths)
      REQUIRE(std::accumulate(widths.begin(), widths.end(), 0.0) == Approx(1));
    const double gap = fluid.seconds * best_vertex(speeds) - 1;
    REQUIRE(gap > -1e-6);
    REQUIRE(gap < 0.02);
    sum += gap;
  }
  CHECK(sum / 60 < 0.002);
}

}  // namespace
}  // namespace t3d::test
