// A short training of a small model on any cuboid, ranks as threads of the test.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "support/model_rig.hpp"

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
  bool bytes_agree = true;
  std::string bytes;  // where they do not
  bool nccl = false;
};

inline Run train(Config config, const Grid& grid, index_t replicas, index_t steps = 20) {
  set_grid(config, grid, replicas);
  config.optimizer.lr = 3e-3;
  config.debug.threads = 1;
  Run result;
  std::mutex mutex;
  run_local_ranks(grid.ranks() * static_cast<int>(replicas), [&](Communicator& world) {
    Machine machine(world, config, grid.shape(replicas));
    if (world.rank() == 0) result.nccl = machine.choice().nccl;
    Trainer trainer(machine, config, steps, corpus(config));
    for (index_t step = 0; step < steps; ++step) {
      world.ledger().clear();
      const StepReport report = trainer.step(kNoStop);
      const Ledger predicted = trainer.predicted_step();
      const std::lock_guard lock(mutex);
      for (const char* axis : {"i", "j", "k", "ij", "ik", "jk", "d", "world"}) {
        const index_t counted = world.ledger().bytes_on(axis);
        if (counted == predicted.bytes_on(axis)) continue;
        result.bytes_agree = false;
        result.bytes = fmt::format("axis {} rank {} step {}: counted {}, predicted {}", axis,
                                   world.rank(), step, counted, predicted.bytes_on(axis));
      }
      if (world.rank() == 0) result.losses.push_back(report.loss);
    }
  });
  return result;
}

}  // namespace t3d::test
