// Trainings where only some ranks have a GPU of their own: groups of these alone go by NCCL, all
// others are staged. Losses as on CPUs, and to the bit as with all groups staged; bytes as
// predicted.
#include <nccl.h>

#include <cmath>
#include <cstdlib>

#include "support/catch.hpp"
#include "support/emulated_gpus.hpp"
#include "support/plan_rig.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

Config mixed(TransportRule transport = TransportRule::automatic) {
  Config config = tiny_gpt();
  config.batch.sequences = 4;
  config.batch.micro = 2;
  config.model.dropout = 0.1;
  config.mesh.device = DeviceRule::mixed;
  config.mesh.transport = transport;
  config.debug.watchdog_seconds = 20;  // a failed rank ends the test instead of hanging the others
  return config;
}

Config on_cpus(Config config) {
  config.mesh.device = DeviceRule::cpu;
  return config;
}

Config staged(Config config) {
  config.mesh.transport = TransportRule::staged;
  return config;
}

/// What `body` sends by NCCL: sizes of the groups, operations.
template <class Body>
std::map<int, int> nccl_operations_of(const Body& body) {
  const std::map<int, int> before = emulation::nccl_operations();
  body();
  std::map<int, int> during;
  for (const auto& [size, count] : emulation::nccl_operations()) {
    const auto found = before.find(size);
    const int more = count - (found == before.end() ? 0 : found->second);
    if (more > 0) during[size] = more;
  }
  return during;
}

std::vector<int> sizes_of(const std::map<int, int>& operations) {
  std::vector<int> sizes;
  for (const auto& [size, count] : operations) sizes.push_back(size);
  return sizes;
}

void check_near(const std::vector<double>& losses, const std::vector<double>& wanted) {
  REQUIRE(losses.size() == wanted.size());
  for (std::size_t step = 0; step < wanted.size(); ++step)
    CHECK(std::abs(losses[step] - wanted[step]) <= 1e-4 * wanted[step]);
}

/// Trains on the first `gpus` ranks' GPUs and other ranks' CPUs.
void check(const Config& config, const Grid& grid, index_t replicas, int gpus,
           const std::vector<int>& sizes_by_nccl) {
  constexpr index_t kSteps = 3;
  INFO(replicas << " x " << grid.text() << " with " << gpus << " GPUs");
  show_gpus(gpus);
  Run run, all_staged;
  const auto operations = nccl_operations_of([&] { run = train(config, grid, replicas, kSteps); });
  CHECK(run.transport == TransportKind::nccl_and_staged);
  CHECK(run.bytes == "");
  CHECK(sizes_of(operations) == sizes_by_nccl);
  check_near(run.losses, train(on_cpus(config), grid, replicas, kSteps).losses);
  const auto none =
      nccl_operations_of([&] { all_staged = train(staged(config), grid, replicas, kSteps); });
  CHECK(all_staged.transport == TransportKind::staged);
  CHECK(none.empty());
  CHECK(run.losses == all_staged.losses);
}

}  // namespace

TEST_CASE("cuboids and axes of GPU ranks go by NCCL beside CPU ranks") {
  check(mixed(), {2, 1, 1, {}, {}, {}}, 2, 2, {2});             // a cuboid
  check(mixed(), {1, 2, 1, {}, {}, {}}, 3, 4, {2});             // two cuboids
  check(mixed(), {2, 2, 2, {}, {}, {}}, 1, 4, {2, 4});          // a slab and its axes
  check(mixed(), {1, 3, 2, {}, {1, 2, 1}, {2, 1}}, 1, 4, {2});  // two lines along k
  Config across = mixed();                                      // the pair along d
  across.mesh.place = {0, 2, 1, 3};
  check(across, {1, 2, 1, {}, {}, {}}, 2, 2, {2});
  Config sharing = mixed();  // ranks 0 and 3 share the first of three GPUs
  sharing.mesh.device = DeviceRule::cuda;
  sharing.mesh.place = {1, 2, 0, 3};
  check(sharing, {1, 2, 1, {}, {}, {}}, 2, 3, {2});
}

TEST_CASE("Adasum across GPU and CPU replicas") {
  Config config = mixed();
  config.optimizer.kind = OptimizerKind::adamw;
  config.aggregate.method = AggregateMethod::adasum;
  config.aggregate.placement = AggregatePlacement::gain;
  config.aggregate.gain_exponent = 0.5;
  check(config, {1, 2, 1, {}, {}, {}}, 2, 2, {2});
}

TEST_CASE("activations between GPU and CPU ranks travel in the plan's format") {
  show_gpus(1);
  Config config = mixed();
  config.precision.compute = ComputeType::bf16;
  config.precision.backend = BackendRule::cpu;
  config.model.dropout = 0;
  for (const ReduceType reduce : {ReduceType::compute, ReduceType::fp32}) {
    config.precision.reduce = reduce;
    const Run both = train(config, {1, 2, 1, {}, {}, {}}, 1, 3);
    const Run cpus = train(on_cpus(config), {1, 2, 1, {}, {}, {}}, 1, 3);
    CHECK(both.transport == TransportKind::staged);
    CHECK(both.bytes == "");
    for (std::size_t step = 0; step < cpus.losses.size(); ++step)
      CHECK(std::abs(both.losses[step] - cpus.losses[step]) < 0.01);
  }
}

TEST_CASE("one GPU among CPU ranks has nobody to use NCCL with; nccl means all ranks") {
  show_gpus(1);
  Run one;
  CHECK(nccl_operations_of([&] { one = train(mixed(), {1, 2, 1, {}, {}, {}}, 1, 2); }).empty());
  CHECK(one.transport == TransportKind::staged);
  show_gpus(2);
  std::string text;
  try {
    (void)train(mixed(TransportRule::nccl), {1, 3, 1, {}, {}, {}}, 1, 2);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::unavailable);
    text = error.what();
  }
  CHECK_THAT(text, contains("needs a GPU of its own for every rank; use \"auto\""));
}

namespace {

/// Losses of 6 steps that begin with `start` and change to `then` after 3; where bytes differ.
struct Changed {
  std::vector<double> losses;
  Remarks bytes;
  Changed(const Config& config, const Plan& start, const Plan& then) {
    with_trainer(start, config, [&](Communicator& world, Machine& machine, Trainer& trainer) {
      if (machine.choice().gpu >= 0 && machine.recordable()) bytes.add("graphs are recorded");
      const auto compare = [&](const Ledger& predicted) {
        const std::string text = difference(world.ledger(), predicted);
        if (!text.empty()) bytes.add(fmt::format("rank {}: {}", world.rank(), text));
        world.ledger().clear();
      };
      world.ledger().clear();
      for (int step = 0; step < 6; ++step) {
        const StepReport report = trainer.step(kNoFlag);
        compare(trainer.predicted_step());
        if (world.rank() == 0) losses.push_back(report.loss);
        if (step == 2) compare(trainer.reshape(then).predicted);
      }
    });
  }
};

}  // namespace

TEST_CASE("idle ranks and a change of plan where some ranks have GPUs") {
  const Config config = mixed();
  constexpr int kRanks = 5;
  const Plan pairs = plan_of(config, {1, 2, 1, {}, {}, {}}, 2, kRanks);  // rank 4 is idle
  const Plan lines = plan_of(config, {1, 1, 2, {}, {}, {}}, 1, kRanks);  // CPU ranks are idle
  const Plan wide = plan_of(config, {2, 2, 1, {3, 1}, {}, {}}, 1, kRanks);
  for (const auto& [start, then] : {std::pair{pairs, wide}, {lines, pairs}, {pairs, lines}}) {
    show_gpus(2);
    const Changed cpus(on_cpus(config), start, then);
    std::unique_ptr<Changed> both;
    const auto operations =
        nccl_operations_of([&] { both = std::make_unique<Changed>(config, start, then); });
    CHECK(sizes_of(operations) == std::vector{2});
    CHECK(both->bytes.all() == "");
    check_near(both->losses, cpus.losses);
    CHECK(both->losses == Changed(staged(config), start, then).losses);
  }
}

TEST_CASE("a checkpoint of GPU and CPU ranks continues to the bit, and on CPUs") {
  show_gpus(2);
  const ScratchFolder whole("whole"), half("half"), moved("moved");
  const Grid grid{2, 2, 1, {3, 1}, {}, {}};
  const Run one = train_part(mixed(), grid, 1, 0, 6, whole);
  for (const ScratchFolder* folder : {&half, &moved})
    (void)train_part(mixed(), grid, 1, 0, 3, *folder);
  const std::vector<double> rest(one.losses.begin() + 3, one.losses.end());
  CHECK(train_part(mixed(), grid, 1, 3, 6, half).losses == rest);
  check_near(train_part(on_cpus(mixed()), grid, 1, 3, 6, moved).losses, rest);
}
