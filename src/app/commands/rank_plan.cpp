#include "app/commands/rank_plan.hpp"

#include <fmt/format.h>

#include "io/log/step_record.hpp"
#include "train/step/trainer.hpp"

namespace t3d {
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
