// How long planning takes on one core, and how near plans come to the bound of all ranks' speed,
// over numbers of ranks and kinds of speeds. Messages are free here unless "links" is said; links:
// 5 us and 100 GB/s in nodes of 8 ranks, 10 us and 12.5 GB/s between them.
//
//   build/cpu/bench/t3d_bench_planner
#include "hetero/planner/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/random.hpp"
#include "support/planner_case.hpp"

using namespace t3d;

namespace {

enum class Kind { continuous, classes };

PlanRequest request_of(int ranks, index_t sequences_per_rank) {
  PlanRequest request;
  request.recipe = test::small_recipe(ranks, sequences_per_rank * ranks);
  ModelConfig& m = request.recipe.base.model;
  m.layers = 32;
  m.hidden = 4096;
  m.heads = m.kv_heads = 32;
  m.ffn = 11008;
  m.vocab = 32000;
  m.context = 2048;
  return request;
}

/// Nodes of 8 ranks. Continuous: each rank for itself; three classes 1 : 2.2 : 3.2 by node, with 1
/// % of noise.
Speeds speeds_of(int ranks, Kind kind, bool links, std::uint64_t seed) {
  constexpr int kNode = 8;
  Speeds speeds;
  for (int rank = 0; rank < ranks; ++rank) {
    const double own = double(random_uniform({seed, 0}, rank));
    const double node = double(random_uniform({seed, 1}, rank / kNode));
    const double of_class = node < 1.0 / 3 ? 1 : node < 2.0 / 3 ? 2.2 : 3.2;
    speeds.ranks.push_back(test::rank_speed(
        1000 * (kind == Kind::continuous ? 1 + 3 * own : of_class * (1 + 0.01 * own)),
        fmt::format("n{}", rank / kNode)));
  }
  if (links) {
    speeds.inside = {5e-6, 1e-11};
    speeds.between = {1e-5, 8e-11};
  }
  return speeds;
}

void measure(int ranks, Kind kind, bool links, index_t sequences) {
  using Clock = std::chrono::steady_clock;
  const int times = ranks > 10000 ? 3 : 7;
  std::vector<double> ms;
  double worst_efficiency = 1;
  std::string mesh;
  for (int n = 0; n < times; ++n) {
    const PlanRequest request = request_of(ranks, sequences);
    const Speeds speeds = speeds_of(ranks, kind, links, static_cast<std::uint64_t>(n));
    const auto start = Clock::now();
    const PlanChoice choice = plan_job(request, speeds);
    ms.push_back(1e3 * std::chrono::duration<double>(Clock::now() - start).count());
    worst_efficiency = std::min(worst_efficiency, choice.predicted.efficiency());
    mesh = choice.plan.mesh().describe();
  }
  std::sort(ms.begin(), ms.end());
  fmt::print("{:>6} {:<10} {:<6} {:>5} {:>9.1f} {:>9.1f} {:>10.3f}  {}\n", ranks,
             kind == Kind::classes ? "3 classes" : "continuous", links ? "links" : "", sequences,
             ms[ms.size() / 2], ms.back(), worst_efficiency, mesh);
}

}  // namespace

int main() {
  fmt::print("{:>6} {:<10} {:<6} {:>5} {:>9} {:>9} {:>10}  {}\n", "ranks", "speeds", "", "seqs",
             "median ms", "worst ms", "worst eff.", "mesh of the last");
  for (const int ranks : {8, 64, 512, 4096})
    for (const Kind kind : {Kind::continuous, Kind::classes})
      for (const bool links : {false, true}) measure(ranks, kind, links, 4);
  for (const index_t sequences : {1, 16}) measure(4096, Kind::continuous, true, sequences);
  for (const bool links : {false, true}) measure(65536, Kind::classes, links, 4);
}
