// How many exact predictions of one rank's bytes (hetero/cost/traffic.hpp) a core makes per second:
// what a search over plans can spend.
//
//   build/cpu/bench/t3d_bench_plan_costs
#include <fmt/format.h>

#include <chrono>

#include "config/make_plan.hpp"
#include "config/presets.hpp"
#include "hetero/cost/keep_cost.hpp"
#include "hetero/cost/traffic.hpp"

using namespace t3d;

namespace {

Config config_of(const char* preset, index_t sequences, const Cuboid& cuboid, index_t replicas) {
  Config config;
  config.model = find_preset(preset)->model;
  config.batch.sequences = sequences;
  config.mesh.cuboid_auto = false;
  config.mesh.cuboid = cuboid;
  config.mesh.replicas = replicas;
  if (replicas > 1) config.aggregate.method = AggregateMethod::adasum;
  fill_computed_defaults(config, "bench");
  return config;
}

/// Calls of `evaluate` per second, over all coordinates of the plan in turn.
template <class Evaluate>
double per_second(const Plan& plan, const Evaluate& evaluate) {
  using Clock = std::chrono::steady_clock;
  const MeshShape mesh = plan.mesh();
  std::vector<Coord> coords;
  for (int rank = 0; rank < static_cast<int>(mesh.ranks()); ++rank)
    coords.push_back(mesh.coord_of(rank));
  const auto start = Clock::now();
  double seconds = 0;
  index_t calls = 0, sum = 0;
  while (seconds < 0.5) {
    for (const Coord& coord : coords) sum += evaluate(coord);
    calls += std::ssize(coords);
    seconds = std::chrono::duration<double>(Clock::now() - start).count();
  }
  if (sum == 0) fmt::print("nothing is sent\n");
  return static_cast<double>(calls) / seconds;
}

void measure(const char* name, const Config& config) {
  index_t ranks = config.mesh.replicas;
  for (const index_t extent : config.mesh.cuboid) ranks *= extent;
  const Plan plan = make_plan(config, {static_cast<int>(ranks)});
  fmt::print("{:<34} {:>8.3g} steps/s {:>10.3g} keep costs/s\n", name,
             per_second(plan, [&](const Coord& c) { return step_traffic(plan, c).total(); }),
             per_second(plan, [&](const Coord& c) { return keep_cost(plan, c).inputs_bytes + 1; }));
}

}  // namespace

int main() {
  measure("30M gpt on 2x2x2", config_of("gpt-30m", 16, {2, 2, 2}, 1));
  measure("30M gpt on 4 x (2x2x2), gram", config_of("gpt-30m", 16, {2, 2, 2}, 4));
  measure("7B llama on 8x8x4", config_of("llama2-7b", 64, {8, 8, 4}, 1));
  measure("7B llama on 4 x (8x8x4), gram", config_of("llama2-7b", 64, {8, 8, 4}, 4));
  measure("7B llama on 64 x (32x8x4), gram", config_of("llama2-7b", 2048, {32, 8, 4}, 64));
  Config muon = config_of("llama2-7b", 64, {8, 8, 4}, 4);
  muon.optimizer.kind = OptimizerKind::muon;
  measure("7B llama on 4 x (8x8x4), muon", muon);
}
