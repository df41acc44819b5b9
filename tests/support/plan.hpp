// From a test's Config to machine, plan and options, by the functions that the program uses.
#pragma once
#include <utility>
#include <vector>

#include "run/setup.hpp"

namespace t3d::test {

/// Ranks that the mesh of a config needs.
inline int ranks_of(const MeshConfig& mesh) {
  if (mesh.cuboids.empty())
    return static_cast<int>(mesh.replicas * mesh.cuboid[0] * mesh.cuboid[1] * mesh.cuboid[2]);
  int sum = 0;
  for (std::size_t at = 0; at < mesh.cuboids.size(); at += 3)
    sum += mesh.cuboids[at] * mesh.cuboids[at + 1] * mesh.cuboids[at + 2];
  return sum;
}

/// One cuboid for each replica.
inline void set_cuboids(Config& config, const std::vector<Cuboid>& cuboids) {
  config.mesh.replicas = std::ssize(cuboids);
  config.mesh.cuboid_auto = false;
  config.mesh.cuboids.clear();
  for (const Cuboid& cuboid : cuboids)
    for (const index_t extent : cuboid) config.mesh.cuboids.push_back(static_cast<int>(extent));
}

/// What the input leaves open is decided as for any input.
inline Plan plan_of(Config config, const PlanFacts& facts) {
  fill_computed_defaults(config, "test.toml");
  return make_plan(config, facts);
}
inline Plan plan_of(const Config& config, int ranks) {
  return plan_of(config, PlanFacts{ranks, TransportKind::host, false});
}
inline Plan plan_of(const Config& config, const Machine& machine) {
  return plan_of(config, plan_facts(machine));
}

/// One thread per rank, and no files.
inline MachineOptions test_machine(const Config& config) {
  MachineOptions options = machine_options(config);
  options.threads = 1;
  options.engines_folder.clear();
  return options;
}

inline TrainOptions test_options(const Config& config, index_t steps) {
  TrainOptions options = train_options(config, 1);
  options.length = {steps, 0};
  return options;
}

}  // namespace t3d::test
