// fp16 with a loss scale found by trial: steps whose gradient overflows leave the weights as they
// are, to the bit, and halve the scale; the first one that fits is a step. Where no scale helps the
// run ends with a word.
#include "train/step/loss_scale.hpp"

#include <cmath>

#include "support/catch.hpp"
#include "support/training.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

using Weights = std::map<std::string, std::vector<double>>;

struct Scaled {
  std::vector<StepReport> reports;
  std::vector<Weights> weights;  // before the first step, and after each
};

struct Way {
  AggregateMethod method;
  AggregatePlacement placement;
};

constexpr Way kMean{AggregateMethod::mean, AggregatePlacement::pre};
constexpr Way kWays[]{kMean,
                      {AggregateMethod::adasum, AggregatePlacement::pre},
                      {AggregateMethod::adasum, AggregatePlacement::gain},
                      {AggregateMethod::adasum, AggregatePlacement::post}};

Config half(const Way& way) {
  Config config = tiny_llama();
  config.precision.compute = ComputeType::fp16;
  config.batch.sequences = 4;
  config.optimizer.lr = 3e-3;
  config.optimizer.weight_decay = 0.1;
  config.schedule.kind = ScheduleKind::constant;
  config.aggregate.method = way.method;
  config.aggregate.placement = way.placement;
  config.aggregate.algorithm = AggregateAlgorithm::gram;
  config.aggregate.gain_exponent = 0.5;
  return config;
}

/// The weights of the head times `enlarged`: so large is the gradient behind it.
Scaled train_half(Config config, index_t replicas, index_t steps, double enlarged) {
  const Grid grid{1, 2, 1, {}, {}, {}};
  set_grid(config, grid, replicas);
  Scaled run;
  std::vector<GlobalTensors> weights(static_cast<std::size_t>(steps + 1));
  run_local_ranks(ranks_of(config.mesh), [&](Communicator& world) {
    Machine machine(world, test_machine(config));
    Trainer trainer(machine, plan_of(config, machine), test_options(config, steps), corpus(config));
    Transformer& model = trainer.formation().model();
    for_each_element(model, false,
                     [&](const ParamEntry& entry, index_t, TensorView shard, index_t at) {
                       if (entry.name == "head.weight")
                         set(shard, 0, at, enlarged * get(shard, 0, at));
                     });
    model.weights_changed();
    collect(model, false, weights[0]);
    for (index_t step = 1; step <= steps; ++step) {
      const StepReport report = trainer.step(kNoFlag);
      collect(model, false, weights[static_cast<std::size_t>(step)]);
      if (world.rank() == 0) run.reports.push_back(report);
    }
  });
  for (GlobalTensors& each : weights) run.weights.push_back(std::move(each.values));
  return run;
}

}  // namespace

TEST_CASE("steps that overflow change nothing but the loss scale") {
  for (const Way& way : kWays) {
    INFO(way.method << ' ' << way.placement);
    const Scaled run = train_half(half(way), 2, 8, 150);
    double scale = 65536;
    index_t skipped = 0;
    for (std::size_t step = 0; step < run.reports.size(); ++step) {
      const StepReport& report = run.reports[step];
      CHECK(report.loss_scale == scale);
      CHECK(std::isfinite(report.loss));
      CHECK((run.weights[step + 1] == run.weights[step]) == report.skipped);
      if (report.skipped) ++skipped;
      if (report.skipped || !report.left_out.empty()) scale /= 2;
    }
    CHECK(skipped >= 2);
    CHECK_FALSE(run.reports.back().skipped);
    CHECK(std::isfinite(run.reports.back().grad_norm));
  }
}

namespace {

double distance(const Weights& a, const Weights& b) {
  double squares = 0;
  for (const auto& [name, values] : a)
    for (std::size_t at = 0; at < values.size(); ++at)
      squares += std::pow(values[at] - b.at(name)[at], 2);
  return std::sqrt(squares);
}

}  // namespace

TEST_CASE("steps do not depend on the loss scale") {
  for (const Way& way : kWays) {
    Config config = half(way);
    config.optimizer.kind = OptimizerKind::sgd;  // the length of a gradient counts
    const Scaled found = train_half(config, 2, 2, 1);
    config.precision.loss_scale = 1024;
    const Scaled given = train_half(config, 2, 2, 1);
    for (std::size_t step = 0; step < 2; ++step) {
      INFO(way.method << ' ' << way.placement << " step " << step);
      CHECK(distance(found.weights[step + 1], given.weights[step + 1]) <=
            0.02 * distance(given.weights[step + 1], given.weights[0]));
      CHECK(found.reports[step].loss_scale == 65536);
      CHECK(given.reports[step].loss_scale == 1024);
      CHECK(found.reports[step].grad_norm == Approx(given.reports[step].grad_norm).epsilon(5e-3));
      CHECK(found.reports[step].loss == Approx(given.reports[step].loss).epsilon(1e-3));
    }
  }
}

TEST_CASE("an overflow at every loss scale ends the run with a word") {
  Config config = half(kMean);
  config.model.init_std = 1e4;  // scores beyond every number
  CHECK_THROWS_WITH(train_half(config, 2, 40, 1), contains("at any loss scale"));
}

TEST_CASE("the loss scale grows after many clean steps and is kept as text") {
  LossScale scale(0, DType::f16);
  CHECK(scale.value() == 65536);
  CHECK(scale.learn(false));
  CHECK(scale.value() == 32768);
  for (int step = 0; step < 1999; ++step) CHECK(scale.learn(true));
  LossScale other(0, DType::f16);
  other.set(scale.text());
  CHECK(other.value() == 32768);
  CHECK(other.learn(true));
  CHECK(other.value() == 65536);
  while (other.value() > 1) CHECK(other.learn(false));
  CHECK_FALSE(other.learn(false));
  LossScale fixed(512, DType::f16);
  CHECK(fixed.learn(false));
  CHECK(fixed.value() == 512);
  CHECK(LossScale(0, DType::bf16).value() == 1);
}
