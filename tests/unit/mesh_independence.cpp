// Twenty training steps are the same on every mesh: fp32 losses agree to 1e-4 relative, counted
// bytes equal predicted ones, and two runs on one mesh agree bitwise.
#include <cmath>

#include "support/catch.hpp"
#include "support/model_rig.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

std::shared_ptr<BatchSource> corpus(const Config& config) {
  std::vector<std::int32_t> ids;
  for (index_t at = 0; at < 4000; ++at)  // words of a small language: learnable, not constant
    ids.push_back(static_cast<std::int32_t>(
        (random_bits({5, 0}, at / 5) + static_cast<std::uint32_t>(at % 5)) % 61));
  return std::make_shared<BatchSource>(make_memory_source(ids, 61), config.model.context,
                                       static_cast<std::uint64_t>(config.run.seed), true);
}

struct Run {
  std::vector<double> losses;
  bool bytes_agree = true;
  std::string bytes;
};

Run train(Config config, const Grid& grid, index_t replicas, index_t steps = 20) {
  set_grid(config, grid, replicas);
  config.optimizer.lr = 3e-3;
  config.debug.threads = 1;
  Run result;
  std::mutex mutex;
  run_local_ranks(grid.ranks() * static_cast<int>(replicas), [&](Communicator& world) {
    Machine machine(world, config, grid.shape(replicas));
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

void check(const Config& config, const Grid& grid, index_t replicas, const Run& one) {
  const Run run = train(config, grid, replicas);
  INFO(replicas << " x " << grid.text() << " keep " << config.mesh.keep << " recompute "
                << config.batch.recompute << "; " << run.bytes);
  CHECK(run.bytes_agree);
  for (std::size_t step = 0; step < one.losses.size(); ++step)
    CHECK(std::abs(run.losses[step] - one.losses[step]) <= 1e-4 * one.losses[step]);
}

}  // namespace

namespace {

void check_all_meshes(Config config) {
  config.batch.sequences = 7;
  config.batch.micro = 3;
  config.model.dropout = 0.1;
  config.precision.backend = "cpu";
  const Run one = train(config, {}, 1);
  CHECK(one.losses.back() < 0.97 * one.losses.front());
  for (const Grid& grid : all_grids()) check(config, grid, 1, one);
  check(config, {2, 2, 1, {}, {}, {}}, 2, one);
  check(config, {1, 2, 1, {}, {}, {}}, 3, one);
}

}  // namespace

TEST_CASE("GPT trains the same on every mesh", "[mesh]") { check_all_meshes(tiny_gpt()); }

TEST_CASE("Llama trains the same on every mesh", "[mesh]") { check_all_meshes(tiny_llama()); }

TEST_CASE("memory policies do not change the training", "[mesh]") {
  Config config = tiny_gpt();
  config.batch.sequences = 6;
  config.batch.micro = 2;
  config.precision.backend = "cpu";
  const Run one = train(config, {}, 1);
  for (const char* keep : {"all", "none"})
    for (const char* recompute : {"none", "block"}) {
      Config other = config;
      other.mesh.keep = keep;
      other.batch.recompute = recompute;
      check(other, {2, 2, 2, {}, {}, {}}, 1, one);
    }
}

TEST_CASE("the same mesh twice gives the same bits", "[mesh]") {
  Config config = tiny_gpt();
  config.precision.backend = "cpu";
  for (const char* compute : {"fp32", "bf16"}) {
    config.precision.compute = compute;
    const Grid grid{2, 2, 2, {3, 1}, {}, {}};
    const Run a = train(config, grid, 1, 5);
    const Run b = train(config, grid, 1, 5);
    CHECK(a.losses == b.losses);
  }
}
