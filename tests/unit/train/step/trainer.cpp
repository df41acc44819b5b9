// The step around the model: clipping by the global norm, weight decay masks, learning-rate
// schedules, micro-batches, a replica without samples, ranks without a place.
#include "train/step/trainer.hpp"

#include <cmath>

#include "support/catch.hpp"
#include "support/model_rig.hpp"
#include "train/step/schedule.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

std::shared_ptr<BatchSource> noise(const Config& config) {
  std::vector<std::int32_t> ids;
  for (index_t at = 0; at < 600; ++at)
    ids.push_back(static_cast<std::int32_t>(random_bits({9, 0}, at) % 61));
  return std::make_shared<BatchSource>(make_memory_source(ids, 61), config.model.context, 1, true);
}

struct SgdStep {
  double grad_norm = 0, length = 0;  // of the gradient, and of the change of all weights
};

// One step of plain SGD with learning rate 1: the change is the clipped gradient.
SgdStep sgd_step(Config config, const Grid& grid, index_t replicas = 1) {
  set_grid(config, grid, replicas);
  config.optimizer.kind = OptimizerKind::sgd;
  config.optimizer.momentum = 0;
  config.optimizer.weight_decay = 0;
  config.optimizer.lr = 1;
  config.schedule.kind = ScheduleKind::constant;
  GlobalTensors before, after;
  SgdStep update;
  run_local_ranks(ranks_of(config.mesh), [&](Communicator& world) {
    Machine machine(world, test_machine(config));
    Trainer trainer(machine, plan_of(config, machine), test_options(config, 1), noise(config));
    Transformer& model = trainer.formation().model();
    collect(model, false, before);
    const StepReport report = trainer.step(kNoFlag);
    collect(model, false, after);
    if (world.rank() == 0) update.grad_norm = report.grad_norm;
  });
  double squares = 0;
  for (const auto& [name, values] : before.values)
    for (std::size_t at = 0; at < values.size(); ++at)
      squares += std::pow(after.values[name][at] - values[at], 2);
  update.length = std::sqrt(squares);
  return update;
}

}  // namespace

TEST_CASE("the update is clipped by the global norm, counted once") {
  for (const Grid& grid :
       {Grid{}, Grid{2, 2, 2, {}, {}, {}}, Grid{2, 3, 1, {1, 2}, {1, 2, 1}, {}}}) {
    Config config = tiny_gpt();
    INFO(grid.text());
    config.optimizer.clip_norm = 0;
    const SgdStep whole = sgd_step(config, grid);
    CHECK(whole.length == Approx(whole.grad_norm).epsilon(1e-4));
    config.optimizer.clip_norm = 0.25 * whole.grad_norm;
    const SgdStep clipped = sgd_step(config, grid);
    CHECK(clipped.grad_norm == Approx(whole.grad_norm).epsilon(1e-6));
    CHECK(clipped.length == Approx(0.25 * whole.grad_norm).epsilon(1e-4));
  }
}

TEST_CASE("the gradient is the mean over the batch, however it is dealt") {
  Config config = tiny_gpt();
  config.batch.sequences = 7;
  config.optimizer.clip_norm = 0;
  const double one = sgd_step(config, {}).grad_norm;
  for (const index_t micro : {1, 2, 3}) {
    config.batch.micro = micro;
    CHECK(sgd_step(config, {}).grad_norm == Approx(one).epsilon(1e-5));
    CHECK(sgd_step(config, {1, 2, 1, {}, {}, {}}, 3).grad_norm == Approx(one).epsilon(1e-5));
  }
}

TEST_CASE("a replica without samples stays and changes nothing") {
  Config config = tiny_gpt();
  config.batch.sequences = 6;
  config.optimizer.clip_norm = 0;
  config.batch.shares = {1, 1};
  const double two = sgd_step(config, {}, 2).grad_norm;
  config.batch.shares = {1, 0, 1};
  for (const AggregateMethod method : {AggregateMethod::mean, AggregateMethod::adasum}) {
    config.aggregate.method = method;
    config.aggregate.placement = AggregatePlacement::pre;
    CHECK(sgd_step(config, {1, 2, 1, {}, {}, {}}, 3).grad_norm == Approx(two).epsilon(1e-5));
  }
}

TEST_CASE("a loss that is not finite stops the run and says what to do") {
  Config config = tiny_gpt();
  config.model.init_std = 1e39;  // beyond fp32
  CHECK_THROWS_WITH(sgd_step(config, {2, 1, 1, {}, {}, {}}), test::contains("optimizer.lr"));
}

namespace {

/// The losses of three steps, and of an evaluation after them, as one rank learns them.
std::vector<double> losses_of(Communicator& world, const Config& config, const Plan& plan) {
  Machine machine(world, test_machine(config));
  Trainer trainer(machine, plan, test_options(config, 3), noise(config));
  std::vector<double> losses;
  for (int step = 0; step < 3; ++step) {
    world.ledger().clear();
    const StepReport report = trainer.step(kNoFlag);
    const std::string fault = difference(world.ledger(), trainer.predicted_step());
    if (!fault.empty()) throw std::runtime_error(fault);
    losses.insert(losses.end(), {report.loss, report.grad_norm});
  }
  const auto valid = noise(config);
  world.ledger().clear();
  losses.push_back(trainer.evaluate(*valid, 5));
  const std::string fault = difference(world.ledger(), trainer.predicted_evaluation(5));
  if (!fault.empty()) throw std::runtime_error(fault);
  return losses;
}

}  // namespace

TEST_CASE("ranks without a place change nothing and learn everything") {
  for (const AggregateMethod method : {AggregateMethod::mean, AggregateMethod::adasum}) {
    Config config = tiny_gpt();
    config.batch.sequences = 6;
    config.batch.micro = 2;
    config.optimizer.kind = OptimizerKind::muon;
    config.aggregate.method = method;
    set_grid(config, {1, 2, 1, {}, {1, 3}, {}}, 2);
    std::vector<double> four;
    run_local_ranks(4, [&](Communicator& world) {
      const std::vector<double> losses = losses_of(world, config, plan_of(config, 4));
      if (world.rank() == 0) four = losses;
    });
    REQUIRE(four.size() == 7);
    for (const std::vector<int>& place :
         {std::vector<int>{}, {0, 1, 3, 4}, {1, 2, 3, 4}, {0, 1, 2, 4}}) {
      config.mesh.place = place;
      std::vector<std::vector<double>> five(5);
      run_local_ranks(5, [&](Communicator& world) {
        five[static_cast<std::size_t>(world.rank())] = losses_of(world, config, plan_of(config, 5));
      });
      for (std::size_t rank = 0; rank < five.size(); ++rank) {
        INFO(method << ", rank " << rank << " of a mesh with " << place.size() << " places");
        CHECK(five[rank] == four);
      }
    }
  }
}

TEST_CASE("whoever computes a whole matrix, the run is the same") {
  Config config = tiny_gpt();
  config.model.layers = 3;
  config.batch.sequences = 6;
  config.optimizer.kind = OptimizerKind::muon;
  config.precision.compute = ComputeType::fp64;
  config.precision.backend = BackendRule::reference;
  set_grid(config, {2, 2, 1, {1, 2}, {}, {}}, 2);
  const auto losses = [&](const std::vector<index_t>& first, const std::vector<index_t>& second) {
    Plan plan = plan_of(config, 8);
    plan.replicas[0].whole = first;
    plan.replicas[1].whole = second;
    std::vector<double> result;
    run_local_ranks(8, [&](Communicator& world) {
      const std::vector<double> own = losses_of(world, config, plan);
      if (world.rank() == 0) result = own;
    });
    return result;
  };
  const std::vector<double> even = losses({}, {});
  REQUIRE(even.size() == 7);
  // One rank is slow, one computes none, one computes all.
  for (const auto& [first, second] :
       {std::pair<std::vector<index_t>, std::vector<index_t>>{{100, 20, 0, 50}, {}},
        {{0, 0, 1, 0}, {1, 100, 3, 7}}}) {
    const std::vector<double> uneven = losses(first, second);
    REQUIRE(uneven.size() == even.size());
    for (std::size_t at = 0; at < even.size(); ++at)
      CHECK(uneven[at] == Approx(even[at]).epsilon(1e-9));
  }
}

TEST_CASE("learning-rate schedules") {
  ScheduleConfig schedule;
  schedule.warmup_steps = 10;
  schedule.final_fraction = 0.1;
  for (const ScheduleKind kind :
       {ScheduleKind::constant, ScheduleKind::linear, ScheduleKind::cosine, ScheduleKind::wsd}) {
    schedule.kind = kind;
    INFO(kind);
    CHECK(schedule_factor(schedule, 0, 110) == Approx(0.1));
    CHECK(schedule_factor(schedule, 9, 110) == Approx(1.0));
    CHECK(schedule_factor(schedule, 10, 110) == Approx(1.0));
    const double last = schedule_factor(schedule, 110, 110);
    CHECK(last == Approx(schedule.kind == ScheduleKind::constant ? 1.0 : 0.1));
    for (index_t step = 11; step <= 110; ++step)
      CHECK(schedule_factor(schedule, step, 110) <=
            schedule_factor(schedule, step - 1, 110) + 1e-12);
  }
  schedule.kind = ScheduleKind::linear;
  CHECK(schedule_factor(schedule, 60, 110) == Approx(0.55));
  schedule.kind = ScheduleKind::cosine;
  CHECK(schedule_factor(schedule, 60, 110) == Approx(0.55));
  schedule.kind = ScheduleKind::wsd;
  CHECK(schedule_factor(schedule, 89, 110) == Approx(1.0));
  CHECK(schedule_factor(schedule, 100, 110) == Approx(0.55));
}
