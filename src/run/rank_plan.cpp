#include "run/rank_plan.hpp"

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

}  // namespace t3d
