// Trainings with Adasum on GPUs: exchanges that start inside a recorded backward pass, through NCCL
// and through host memory; losses as on CPUs, graphs and single launches to the bit.
#include <atomic>
#include <cmath>
#include <cstdlib>

#include "ops/registry.hpp"
#include "support/catch.hpp"
#include "support/emulated_gpus.hpp"
#include "support/plan_rig.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

using enum AggregatePlacement;
using enum OptimizerKind;

constexpr index_t kSteps = 5;

Config adasum(AggregatePlacement placement, OptimizerKind optimizer,
              AggregateAlgorithm algorithm = AggregateAlgorithm::gram) {
  Config config = tiny_gpt();
  config.batch.sequences = 6;
  config.batch.micro = 1;
  config.model.dropout = 0.1;
  config.optimizer.kind = optimizer;
  config.aggregate.method = AggregateMethod::adasum;
  config.aggregate.placement = placement;
  config.aggregate.algorithm = algorithm;
  config.aggregate.gain_exponent = optimizer == sgd ? 1 : 0.5;
  return config;
}

Run on_gpus(Config config, const Grid& grid, index_t replicas) {
  config.mesh.device = DeviceRule::cuda;
  const Run run = train(config, grid, replicas, kSteps);
  INFO(replicas << " x " << grid.text() << "; " << run.bytes);
  CHECK(run.bytes_agree);
  return run;
}

void check_near(const Run& run, const Run& reference) {
  for (std::size_t step = 0; step < reference.losses.size(); ++step) {
    const StepReport &got = run.reports[step], &wanted = reference.reports[step];
    CHECK(got.loss == Approx(wanted.loss).epsilon(1e-4));
    CHECK(got.grad_norm == Approx(wanted.grad_norm).epsilon(1e-3));
    CHECK(got.left_out == wanted.left_out);
    CHECK(std::isnan(got.gain) == std::isnan(wanted.gain));
    if (!std::isnan(wanted.gain)) CHECK(got.gain == Approx(wanted.gain).epsilon(1e-3));
  }
}

}  // namespace

TEST_CASE("weights that change with every step do not stop the queue") {
  show_gpus(1);
  for (const AggregateAlgorithm algorithm : {AggregateAlgorithm::gram, AggregateAlgorithm::flat}) {
    Config config = adasum(pre, sgd, algorithm);
    config.mesh.device = DeviceRule::cuda;
    set_grid(config, Grid{}, 2);
    const Plan plan = plan_of(config, 2);
    std::atomic<int> ran_on{0};
    run_local_ranks(2, [&](Communicator& world) {
      Machine machine(world, test_machine(config));
      Formation formation(machine, plan, config.optimizer);
      const auto long_work = [&] {
        Tensor x(machine.device(), DType::f32, 512, 512, MemoryKind::workspace);
        for (int again = 0; again < 20; ++again) machine.ops().fill(machine.queue(), x, again);
        return machine.queue().mark();
      };
      formation.update().set_weights({0.25, 1});
      machine.queue().synchronize();
      const auto before = long_work();
      formation.update().set_weights({0.5, 1});
      if (!before->reached()) ++ran_on;
      before->wait();
    });
    CHECK(ran_on == 2);
  }
}

TEST_CASE("adasum of GPUs through NCCL and graphs is adasum of CPUs") {
  for (const auto& [placement, optimizer] : {std::pair{pre, sgd}, {gain, adamw}, {post, adamw}})
    for (const index_t replicas : {2, 3}) {
      INFO(placement << ' ' << optimizer << " of " << replicas);
      Config config = adasum(placement, optimizer);
      const Grid grid{1, replicas == 2 ? 2 : 1, 1, {}, {}, {}};
      const Run cpus = train(config, grid, replicas, kSteps);
      show_gpus(static_cast<int>(replicas) * grid.ranks());
      const Run graphs = on_gpus(config, grid, replicas);
      if (static_cast<int>(visible_gpus().size()) >= grid.ranks() * static_cast<int>(replicas))
        CHECK(graphs.transport == TransportKind::nccl);
      check_near(graphs, cpus);
      config.debug.graphs = false;
      CHECK(on_gpus(config, grid, replicas).losses == graphs.losses);
      show_gpus(1);
      const Run staged = on_gpus(config, grid, replicas);
      CHECK(staged.transport == TransportKind::staged);
      CHECK(staged.losses == graphs.losses);
    }
}

TEST_CASE("other optimizers, algorithms, leaves and shares on GPUs") {
  const auto check = [](const Config& config, const Grid& grid, index_t replicas) {
    INFO(config.aggregate.placement << ' ' << config.optimizer.kind << ' '
                                    << config.aggregate.algorithm);
    show_gpus(static_cast<int>(replicas) * grid.ranks());
    check_near(on_gpus(config, grid, replicas), train(config, grid, replicas, kSteps));
  };
  check(adasum(gain, lamb), {}, 2);
  Config model = adasum(gain, lamb);
  model.aggregate.per = GroupBy::model;
  check(model, {}, 2);
  check(adasum(gain, muon), {1, 1, 2, {}, {}, {}}, 2);
  check(adasum(gain, adamw, AggregateAlgorithm::flat), {}, 3);
  check(adasum(post, lamb), {}, 3);
  Config leaves = adasum(gain, adamw);
  leaves.aggregate.leaves = 3;
  check(leaves, {}, 2);
  Config shares = adasum(gain, adamw);
  shares.batch.shares = {2, 0, 1};
  check(shares, {2, 1, 1, {}, {}, {}}, 3);
  Config alone = adasum(gain, adamw);  // recorded without anybody to talk to
  alone.aggregate.leaves = 2;
  check(alone, {}, 1);
}

// Noise and private optimizers go through the host into a checkpoint and back.
TEST_CASE("adasum's state on GPUs continues to the bit, and on CPUs") {
  for (const AggregatePlacement placement : {gain, post}) {
    INFO(placement);
    show_gpus(2);
    Config config = adasum(placement, adamw);
    config.aggregate.reference_batch = 1;
    const ScratchFolder whole("whole"), half("half"), moved("moved");
    Config gpus = config;
    gpus.mesh.device = DeviceRule::cuda;
    const Run one = train_part(gpus, {}, 2, 0, 6, whole);
    for (const ScratchFolder* folder : {&half, &moved})
      (void)train_part(gpus, {}, 2, 0, 3, *folder);
    const Run same = train_part(gpus, {}, 2, 3, 6, half);
    const Run cpus = train_part(config, {}, 2, 3, 6, moved);
    CHECK(same.losses == std::vector<double>(one.losses.begin() + 3, one.losses.end()));
    for (std::size_t step = 0; step < 3; ++step)
      CHECK(cpus.losses[step] == Approx(one.losses[3 + step]).epsilon(1e-4));
  }
}

TEST_CASE("fp16 on GPUs finds its loss scale") {
  for (const AggregatePlacement placement : {gain, post}) {
    INFO(placement);
    Config config = adasum(placement, adamw);
    config.precision.compute = ComputeType::fp16;
    const Run cpus = train(config, {}, 2, kSteps);
    show_gpus(2);
    const Run gpus = on_gpus(config, {}, 2);
    for (std::size_t step = 0; step < cpus.losses.size(); ++step) {
      CHECK(gpus.losses[step] == Approx(cpus.losses[step]).epsilon(2e-3));
      CHECK(gpus.reports[step].loss_scale == cpus.reports[step].loss_scale);
      CHECK_FALSE(gpus.reports[step].skipped);
    }
  }
}
