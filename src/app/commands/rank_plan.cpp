#include "app/commands/rank_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "io/log/step_record.hpp"
#include "train/step/trainer.hpp"

namespace t3d {
namespace {

constexpr index_t kSimulateAll = 64;  // up to here every rank is run, beyond one of each kind

using SimulatedKind =
    std::tuple<index_t, index_t, index_t, index_t, index_t, bool, bool, bool, index_t>;

// First ranks of an axis hold the odd units of sub-splits, so they are kinds of their own. Replicas
// behind the first differ where their cuts do.
SimulatedKind kind_of(const Plan& plan, const Coord& c) {
  const ReplicaPlan& cut = plan.replica(c.d);
  return {cut.tokens.back().size(c.i),
          cut.groups.size(c.j),
          cut.ffn.size(c.j),
          cut.vocab.size(c.j),
          cut.hidden.size(c.k),
          c.i == 0,
          c.j == 0,
          c.k == 0,
          plan.alike() ? std::min(c.d, index_t{1}) : c.d};
}

}  // namespace

RankPlan simulate_rank(const Plan& plan, const OptimizerConfig& optimizer, int rank) {
  const auto world =
      make_dry_communicator(plan.active()[static_cast<std::size_t>(rank)], plan.ranks);
  MachineOptions options;
  options.dry = true;
  Machine machine(*world, options);
  TrainOptions training;
  training.optimizer = optimizer;
  training.length.steps = 2;
  RankPlan result;
  result.coord = plan.mesh().coord_of(rank);
  result.ranks = 1;
  Trainer trainer(machine, plan, training, nullptr);
  for (const ParamBucket* bucket : trainer.formation().model().buckets())
    result.parameters += bucket->shard_count();
  (void)trainer.step(kNoFlag);  // the second step finds the cached memory of the first
  world->ledger().clear();
  (void)trainer.step(kNoFlag);
  result.counted = world->ledger();
  result.predicted = trainer.predicted_step();
  result.memory = machine.device().memory();
  return result;
}

std::vector<RankPlan> simulate_ranks(const Plan& plan, const OptimizerConfig& optimizer) {
  const MeshShape mesh = plan.mesh();
  std::map<SimulatedKind, std::size_t> known;
  std::vector<RankPlan> results;
  for (int rank = 0; rank < static_cast<int>(mesh.ranks()); ++rank) {
    const SimulatedKind kind = kind_of(plan, mesh.coord_of(rank));
    const auto found = known.find(kind);
    if (mesh.ranks() > kSimulateAll && found != known.end()) {
      ++results[found->second].ranks;
      continue;
    }
    known.emplace(kind, results.size());
    results.push_back(simulate_rank(plan, optimizer, rank));
  }
  return results;
}

std::string memory_shortage(const Coord& coord, const MemoryCost& memory, const Device& device,
                            int sharers) {
  const Device::Capacity capacity = device.capacity();
  if (capacity.total <= 0) return {};
  const auto text = [](index_t bytes) { return short_bytes(static_cast<double>(bytes)); };
  const index_t share = capacity.free / sharers;
  if (memory.tensors_peak <= share) return {};
  std::string parts;
  for (int kind = 0; kind < kMemoryKinds; ++kind)
    parts += fmt::format("{}{} {}", kind == 0 ? "" : " + ", name_of(static_cast<MemoryKind>(kind)),
                         text(memory.by_kind[static_cast<std::size_t>(kind)]));
  return fmt::format(
      "the rank at d={} i={} j={} k={} needs {} ({}) and {} has {} free of {}{}; a smaller "
      "batch.micro, batch.recompute = \"block\" or more ranks would help",
      coord.d, coord.i, coord.j, coord.k, text(memory.tensors_peak), parts, device.name(),
      text(capacity.free), text(capacity.total),
      sharers > 1 ? fmt::format(", for {} ranks", sharers) : "");
}

}  // namespace t3d
