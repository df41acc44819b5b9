// The noise of the gradient under mean and sum: from the replicas' own squares and that of their
// mean, whatever the shares, cuts and masks; against gradients that are computed one by one.
#include "train/step/noise_scale.hpp"

#include "hetero/planner/slab_sequences.hpp"
#include "support/catch.hpp"
#include "support/plan_changes.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

using Counts = std::vector<index_t>;

constexpr index_t kContext = 8;
constexpr std::int32_t kIgnored = 0;
constexpr double kReference = 2;

/// A fifth of the targets does not count. The text begins with that of sample `first`.
MakeSource samples_from(index_t first) {
  return [first](const Config&) {
    std::vector<std::int32_t> ids;
    for (index_t at = first * kContext; at < (first + 40) * kContext + 1; ++at)
      ids.push_back(static_cast<std::int32_t>(
          random_bits({41, 0}, at) % 5 == 0 ? kIgnored : 1 + random_bits({42, 0}, at) % 60));
    return std::make_shared<BatchSource>(make_memory_source(ids, 61), kContext, 1, false, kIgnored);
  };
}

Config input(index_t sequences, AggregateMethod method, ComputeType compute) {
  Config config = gpt_input();
  config.model.context = kContext;
  config.batch.sequences = sequences;
  config.precision.compute = compute;
  config.precision.backend = BackendRule::reference;
  config.optimizer.kind = OptimizerKind::sgd;
  config.optimizer.clip_norm = 1e-3;  // squares are those before clipping
  config.schedule.kind = ScheduleKind::constant;
  config.aggregate.method = method;
  return config;
}

/// Of the first step, from sample `first` on.
StepReport first_step(const Config& config, const std::vector<Cuboid>& cuboids, const Counts& slabs,
                      index_t first = 0) {
  Plan plan = with_slab_sequences(plan_of_cuboids(config, cuboids), slabs, 0);
  plan.aggregate.reference_batch = kReference;
  StepReport report;
  with_trainer(
      plan, config,
      [&](Communicator& world, Machine&, Trainer& trainer) {
        const StepReport own = trainer.step(kNoFlag);
        if (world.rank() == 0) report = own;
      },
      samples_from(first));
  return report;
}

struct Case {
  std::vector<Cuboid> cuboids;
  Counts slabs;     // sequences
  Counts replicas;  // the same by replica
};

/// From each replica's gradient alone and from that of the whole batch.
void check(const Case& c, AggregateMethod method, ComputeType compute, double accuracy) {
  index_t sequences = 0;
  double squares = 0, weights = 0;
  int count = 0;
  for (const index_t own : c.replicas) {
    const index_t first = sequences;
    sequences += own;
    if (own == 0) continue;
    const StepReport alone =
        first_step(input(own, AggregateMethod::mean, compute), {{1, 1, 1}}, {own}, first);
    CHECK(std::isnan(alone.gradient_noise));
    const double weight = static_cast<double>(alone.targets) / (kReference * kContext);
    squares += weight * alone.grad_norm * alone.grad_norm;
    weights += weight;
    ++count;
  }
  const StepReport whole =
      first_step(input(sequences, AggregateMethod::mean, compute), {{1, 1, 1}}, {sequences});
  const double mean = whole.grad_norm * whole.grad_norm;
  const double noise = (squares - weights * mean) / (count - 1), signal = mean - noise / weights;
  const StepReport report = first_step(input(sequences, method, compute), c.cuboids, c.slabs);
  INFO(method << ", " << c.cuboids.size() << " replicas, first slab " << c.slabs.front());
  CHECK(report.gradient_noise == Approx(noise * kReference).epsilon(accuracy));
  CHECK(report.gradient_signal == Approx(signal).epsilon(accuracy));
  if (signal > 0)
    CHECK(report.noise_sequences == Approx(noise * kReference / signal).epsilon(2 * accuracy));
}

}  // namespace

TEST_CASE("mean and sum know the noise of unequal replicas", "[noise_scale]") {
  for (const AggregateMethod method : {AggregateMethod::mean, AggregateMethod::sum}) {
    check({{{1, 1, 1}, {1, 1, 1}}, {4, 4}, {4, 4}}, method, ComputeType::fp64, 1e-9);
    check({{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}, {2, 5, 1}, {2, 5, 1}}, method, ComputeType::fp64,
          1e-9);
    check({{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}, {3, 0, 5}, {3, 0, 5}}, method, ComputeType::fp64,
          1e-9);
    check({{{2, 1, 1}, {1, 2, 1}}, {1, 2, 5}, {3, 5}}, method, ComputeType::fp64, 1e-9);
  }
  // Gradients travel times the loss scale.
  check({{{1, 1, 1}, {1, 1, 1}}, {2, 6}, {2, 6}}, AggregateMethod::mean, ComputeType::fp16, 0.05);
}

TEST_CASE("one replica with samples knows no noise", "[noise_scale]") {
  const Config config = input(8, AggregateMethod::mean, ComputeType::fp64);
  for (const Counts& slabs : {Counts{8, 0}, Counts{0, 8}})
    CHECK(std::isnan(first_step(config, {{1, 1, 1}, {1, 1, 1}}, slabs).gradient_noise));
}

TEST_CASE("the noise scale is the ratio of means, not the mean of ratios", "[noise_scale]") {
  NoiseScale scale;
  double ratio = 0;
  for (int step = 0; step < 400; ++step) {
    StepReport report;
    report.gradient_signal = step % 2 == 0 ? 5 : -3;  // mean 1
    report.gradient_noise = step % 2 == 0 ? 12 : 8;   // mean 10
    scale.follow(report, AggregateMethod::mean);
    ratio = report.noise_sequences;
  }
  CHECK(ratio == Approx(10).epsilon(0.1));
  StepReport skipped;  // says nothing
  scale.follow(skipped, AggregateMethod::mean);
  CHECK(skipped.noise_sequences == ratio);
}
