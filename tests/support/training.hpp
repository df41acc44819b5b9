// A short training of a small model on any cuboid, ranks as threads of the test.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "support/model_rig.hpp"
#include "support/scratch_folder.hpp"

namespace t3d::test {

inline std::shared_ptr<BatchSource> corpus(const Config& config) {
  std::vector<std::int32_t> ids;
  for (index_t at = 0; at < 4000; ++at)  // words of a small language: learnable, not constant
    ids.push_back(static_cast<std::int32_t>(
        (random_bits({5, 0}, at / 5) + static_cast<std::uint32_t>(at % 5)) % 61));
  return std::make_shared<BatchSource>(make_memory_source(ids, 61), config.model.context,
                                       static_cast<std::uint64_t>(config.run.seed), true);
}

/// What all ranks saw of one training.
struct Run {
  std::vector<double> losses;
  std::vector<StepReport> reports;
  bool bytes_agree = true;
  std::string bytes;  // where they do not
  TransportKind transport = TransportKind::host;
};

/// On the mesh of `config`.
inline Run train_on(Config config, index_t steps, double lr = 3e-3) {
  config.optimizer.lr = lr;
  Run result;
  std::mutex mutex;
  run_local_ranks(ranks_of(config.mesh), [&](Communicator& world) {
    Machine machine(world, test_machine(config));
    if (world.rank() == 0) result.transport = machine.choice().transport;
    Trainer trainer(machine, plan_of(config, machine), test_options(config, steps), corpus(config));
    for (index_t step = 0; step < steps; ++step) {
      world.ledger().clear();
      const StepReport report = trainer.step(kNoFlag);
      const std::string fault = difference(world.ledger(), trainer.predicted_step());
      const std::lock_guard lock(mutex);
      if (!fault.empty()) {
        result.bytes_agree = false;
        result.bytes = fmt::format("rank {} step {}: {}", world.rank(), step, fault);
      }
      if (world.rank() != 0) continue;
      result.losses.push_back(report.loss);
      result.reports.push_back(report);
    }
  });
  return result;
}

inline Run train(Config config, const Grid& grid, index_t replicas, index_t steps = 20,
                 double lr = 3e-3) {
  set_grid(config, grid, replicas);
  return train_on(std::move(config), steps, lr);
}

/// Steps [first, last) of a training with a constant learning rate. Where they do not begin at 0
/// they continue what `folder` holds; what comes of them is saved there.
inline Run train_part(Config config, const Grid& grid, index_t replicas, index_t first,
                      index_t last, const ScratchFolder& folder, double lr = 3e-3) {
  set_grid(config, grid, replicas);
  config.optimizer.lr = lr;
  config.schedule.kind = ScheduleKind::constant;
  Run run;
  run_local_ranks(ranks_of(config.mesh), [&](Communicator& world) {
    Machine machine(world, test_machine(config));
    Trainer trainer(machine, plan_of(config, machine), test_options(config, last), corpus(config));
    if (first > 0) {
      const auto info = load_newest(
          world, folder.path(), [&](const CheckpointInfo&) { return trainer.parts(); }, {},
          Trainer::kPrivateState);
      trainer.restore(info->state.step, info->state.texts, trainer.plan().sequences());
    }
    while (trainer.progress().steps < last) {
      const StepReport report = trainer.step(kNoFlag);
      if (world.rank() != 0) continue;
      run.losses.push_back(report.loss);
      run.reports.push_back(report);
    }
    CheckpointOptions options;
    options.dir = folder.path();
    CheckpointState state;
    state.step = last;
    state.texts = trainer.texts();
    (void)save_checkpoint(world, options, state, trainer.parts_to_save(), true);
  });
  return run;
}

}  // namespace t3d::test
