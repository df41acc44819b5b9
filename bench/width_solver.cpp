// How near to the optimum the solver of widths comes (hetero/solve/widths.hpp), how near it can
// prove that it is, and how long it takes on one core. Speeds are drawn at random; nothing is
// measured.
//
//   build/cpu/bench/t3d_bench_widths
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>

#include "core/random.hpp"
#include "hetero/solve/width_search.hpp"

using namespace t3d;

namespace {

class Draw {
 public:
  explicit Draw(std::string_view stream) : key_{1, stream_of(stream)} {}
  double uniform() { return random_uniform(key_, drawn_++); }
  index_t below(index_t end) { return random_bits(key_, drawn_++) % end; }
  index_t between(double low, double high) {
    return static_cast<index_t>(low * std::pow(high / low, uniform()));
  }

 private:
  RandomKey key_;
  index_t drawn_ = 0;
};

enum class Kind { classes, uniform, few_slow };
constexpr std::array kKinds{Kind::classes, Kind::uniform, Kind::few_slow};

const char* name_of(Kind kind) {
  return kind == Kind::classes ? "1 : 2.2 : 3.2" : kind == Kind::uniform ? "1 to 4" : "2 % half";
}

/// With 3 % of jitter.
double speed_of(Kind kind, Draw& draw) {
  constexpr std::array classes{1.0, 2.2, 3.2};
  const double jitter = 0.985 + 0.03 * draw.uniform();
  if (kind == Kind::classes) return classes[static_cast<std::size_t>(draw.below(3))] * jitter;
  if (kind == Kind::uniform) return 1 + 3 * draw.uniform();
  return (draw.uniform() < 0.02 ? 0.5 : 1) * jitter;
}

index_t ranks_of(const Cuboid& cuboid) { return cuboid[0] * cuboid[1] * cuboid[2]; }

WidthProblem problem_of(const Cuboid& cuboid, const std::array<index_t, 3>& units, Kind kind,
                        bool sorted, Draw& draw) {
  WidthProblem problem;
  problem.cuboid = cuboid;
  problem.units = units;
  for (index_t rank = 0; rank < ranks_of(cuboid); ++rank)
    problem.speeds.push_back(speed_of(kind, draw));
  if (sorted) std::sort(problem.speeds.begin(), problem.speeds.end(), std::greater<>());
  return problem;
}

/// Sum of all speeds, as if any rank could take any part of the work, over what is reached.
double efficiency(const WidthProblem& problem, const WidthSolution& solution) {
  double work = 1;
  for (const index_t units : problem.units) work *= static_cast<double>(units);
  return work / std::accumulate(problem.speeds.begin(), problem.speeds.end(), 0.0) /
         solution.seconds;
}

struct Timed {
  WidthSolution solution;
  double milliseconds = 0;  // of the processor
};

Timed timed(const WidthProblem& problem) {
  const std::clock_t start = std::clock();
  WidthSolution solution = solve_widths(problem);
  return {std::move(solution),
          1e3 * static_cast<double>(std::clock() - start) / double{CLOCKS_PER_SEC}};
}

struct Figures {
  std::vector<double> values;
  [[nodiscard]] double mean() const {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  }
  [[nodiscard]] double worst() const { return *std::max_element(values.begin(), values.end()); }
  [[nodiscard]] double median() const {
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

/// Random arrangements of at most 18 ranks with more than 10^6 lattice points, against the best
/// that a search of 10^9 visits of a rank finds from there.
void small_grids(const char* name, double least_units, double most_units, int cases) {
  constexpr std::array cuboids{Cuboid{2, 2, 2}, Cuboid{3, 2, 2}, Cuboid{3, 3, 2}, Cuboid{2, 3, 3},
                               Cuboid{4, 2, 2}, Cuboid{4, 4, 1}, Cuboid{6, 3, 1}, Cuboid{9, 2, 1}};
  Draw draw(name);
  Figures gap, certified, time;
  int proven = 0, best_proven = 0;
  while (std::ssize(gap.values) < cases) {
    const Cuboid& cuboid = cuboids[static_cast<std::size_t>(draw.below(std::ssize(cuboids)))];
    std::array<index_t, 3> units{};
    for (index_t& unit : units) unit = draw.between(least_units, most_units);
    const WidthProblem problem =
        problem_of(cuboid, units, kKinds[static_cast<std::size_t>(draw.below(3))], false, draw);
    const WidthGrid grid(problem);
    if (grid.lattice_points(0) * grid.lattice_points(1) * grid.lattice_points(2) <= 1e6) continue;
    const auto [solution, milliseconds] = timed(problem);
    const SearchResult better =
        search_widths(grid, solution.seconds * (1 - kSameTime), solution.exact ? 1 : 1'000'000'000);
    const double best = better.best ? better.best->seconds : solution.seconds;
    gap.values.push_back(100 * (solution.seconds / best - 1));
    certified.values.push_back(100 * (solution.seconds / solution.bound - 1));
    time.values.push_back(milliseconds);
    proven += solution.exact ? 1 : 0;
    best_proven += solution.exact || better.complete ? 1 : 0;
  }
  fmt::print("{:<14} {:>5} {:>6} {:>6} {:>9.4f} {:>7.3f} {:>9.3f} {:>7.2f} {:>9.2f} {:>7.1f}\n",
             name, cases, proven, best_proven, gap.mean(), gap.worst(), certified.mean(),
             certified.worst(), time.median(), time.worst());
}

void large_grids() {
  Draw draw("large");
  Figures time, sorted_time;
  for (const Cuboid& cuboid : {Cuboid{16, 16, 16}, Cuboid{64, 8, 8}, Cuboid{256, 4, 4}})
    for (const Kind kind : kKinds)
      for (const std::array<index_t, 3>& units : {std::array<index_t, 3>{4 * cuboid[0], 64, 128},
                                                  {16 * cuboid[0], 100, 100},
                                                  {8192, 8192, 8192}})
        for (const bool sorted : {true, false}) {
          const WidthProblem problem = problem_of(cuboid, units, kind, sorted, draw);
          const auto [solution, milliseconds] = timed(problem);
          (sorted ? sorted_time : time).values.push_back(milliseconds);
          fmt::print("{:<12} {:<14} {:<18} {:<8} {:>10.4f} {:>9.2f} {:>6} {:>8.1f}\n",
                     fmt::format("{}x{}x{}", cuboid[0], cuboid[1], cuboid[2]), name_of(kind),
                     fmt::format("{} x {} x {}", units[0], units[1], units[2]),
                     sorted ? "sorted" : "random", efficiency(problem, solution),
                     100 * (solution.seconds / solution.bound - 1), solution.exact ? "yes" : "no",
                     milliseconds);
        }
  fmt::print(
      "sorted: median {:.1f} ms, worst {:.1f} ms; random: median {:.1f} ms, worst {:.1f} ms\n",
      sorted_time.median(), sorted_time.worst(), time.median(), time.worst());
}

/// Three classes, one third of the ranks each, sorted: the token axis' grain decides.
void sequences_per_slab() {
  for (const Cuboid& cuboid : {Cuboid{8, 2, 2}, Cuboid{16, 4, 4}, Cuboid{16, 16, 16},
                               Cuboid{64, 8, 8}, Cuboid{256, 4, 4}}) {
    fmt::print("{:<12}", fmt::format("{}x{}x{}", cuboid[0], cuboid[1], cuboid[2]));
    for (const index_t sequences : {4, 8, 16, 64}) {
      Draw draw("slabs");
      const WidthProblem problem =
          problem_of(cuboid, {sequences * cuboid[0], 64, 128}, Kind::classes, true, draw);
      fmt::print(" {:>8.4f}", efficiency(problem, solve_widths(problem)));
    }
    fmt::print("\n");
  }
}

}  // namespace

int main() {
  fmt::print("Fixed random arrangements, at most 18 ranks, more than 10^6 lattice points.\n");
  fmt::print("{:<14} {:>5} {:>6} {:>6} {:>17} {:>17} {:>17}\n", "", "", "proven", "proven",
             "gap % to best", "certified gap %", "ms");
  fmt::print("{:<14} {:>5} {:>6} {:>6} {:>9} {:>7} {:>9} {:>7} {:>9} {:>7}\n", "units per axis",
             "cases", "alone", "after", "mean", "worst", "mean", "worst", "median", "worst");
  small_grids("8 to 256", 8, 256, 300);
  small_grids("256 to 4096", 256, 4096, 100);
  fmt::print("\n4,096 ranks, one cuboid\n{:<12} {:<14} {:<18} {:<8} {:>10} {:>9} {:>6} {:>8}\n",
             "cuboid", "speeds", "units", "places", "efficiency", "gap %", "proven", "ms");
  large_grids();
  fmt::print(
      "\nEfficiency after rounding, by sequences per slab, speeds 1 : 2.2 : 3.2 sorted,\n"
      "64 x 128 units along j and k\n{:<12} {:>8} {:>8} {:>8} {:>8}\n",
      "cuboid", 4, 8, 16, 64);
  sequences_per_slab();
  return 0;
}
