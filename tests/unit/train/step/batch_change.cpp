// Any sequence of plans trains the same: shares and token widths that change at random every few
// steps, other shapes in between. Changes of the batch alone move nothing (Trainer::reshape).
#include <numeric>

#include "hetero/planner/slab_sequences.hpp"
#include "support/catch.hpp"
#include "support/plan_changes.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

using Counts = std::vector<index_t>;

/// Numbers below n, a stream per seed.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed) {}
  index_t operator()(index_t n) {
    return static_cast<index_t>(random_bits({31, seed_}, at_++) % static_cast<std::uint32_t>(n));
  }

 private:
  std::uint64_t seed_;
  index_t at_ = 0;
};

/// The sequences of `plan` on its slabs in any way; some slabs and some replicas may have none.
Plan any_batch(const Plan& plan, Draw& draw) {
  const index_t unit = leaf_unit(plan);
  Counts slabs;
  Counts share(plan.replicas.size(), 0);
  for (index_t left = plan.sequences(); left > 0; left -= unit)
    share[static_cast<std::size_t>(std::min(draw(std::ssize(share)), draw(std::ssize(share))))] +=
        unit;
  for (std::size_t d = 0; d < share.size(); ++d) {
    const auto p = static_cast<std::size_t>(plan.replicas[d].cuboid[0]);
    Counts own(p, 0);
    for (index_t n = 0; n < share[d]; ++n) ++own[static_cast<std::size_t>(draw(std::ssize(own)))];
    slabs.insert(slabs.end(), own.begin(), own.end());
  }
  return with_slab_sequences(plan, slabs, draw(5));
}

/// From shapes[0], every one to four steps another batch or, one time in four, another shape.
Changes random_changes(const Config& config, const std::vector<Plan>& shapes, index_t steps,
                       std::uint64_t seed) {
  Draw draw(seed);
  Changes changes{config, shapes[0], {}, steps};
  Plan now = shapes[0];
  for (index_t step = 1 + draw(3); step < steps; step += 1 + draw(4)) {
    if (draw(4) == 0) now = shapes[static_cast<std::size_t>(draw(std::ssize(shapes)))];
    now = any_batch(now, draw);
    changes.after.emplace(step, now);
  }
  return changes;
}

Config reference_input(ComputeType compute, AggregateMethod method) {
  Config config = gpt_input();
  config.model.dropout = 0.1;
  config.batch.sequences = 9;
  config.batch.micro = 4;
  config.precision.compute = compute;
  config.precision.backend =
      compute == ComputeType::fp64 ? BackendRule::reference : BackendRule::cpu;
  config.aggregate.method = method;
  return config;
}

constexpr int kRanks = 6;

Plan shape(const Config& config, const std::vector<Cuboid>& cuboids) {
  Plan plan = plan_of_cuboids(config, cuboids, kRanks);
  plan.aggregate.reference_batch = 9;
  return plan;
}

std::vector<Plan> shapes_of(const Config& config) {
  return {shape(config, {{2, 1, 1}, {2, 2, 1}}), shape(config, {{2, 2, 1}, {1, 1, 2}}),
          shape(config, {{3, 1, 1}, {1, 2, 1}}),  // one rank is idle
          shape(config, {{1, 1, 1}, {2, 1, 1}, {1, 1, 1}, {2, 1, 1}})};
}

/// As the run without changes, within `tolerance`.
void check_same(const Changes& changes, const RunOutcome& without, double tolerance) {
  RunOutcome with;
  run(changes, with);
  CHECK(with.state == "");
  CHECK(with.bytes == "");
  CHECK(with.reset.empty());
  CHECK(largest_difference(with.losses, without.losses) < tolerance);
}

void check_seeds(const Config& config, const std::vector<Plan>& shapes, index_t steps,
                 const std::vector<std::uint64_t>& seeds, double tolerance) {
  RunOutcome without;
  run({config, shapes[0], {}, steps}, without);
  CHECK(without.losses.back() < 0.98 * without.losses.front());
  for (const std::uint64_t seed : seeds) {
    const Changes changes = random_changes(config, shapes, steps, seed);
    INFO("seed " << seed << ", " << changes.after.size() << " changes");
    check_same(changes, without, tolerance);
  }
}

}  // namespace

TEST_CASE("any sequence of batches and shapes trains the same, fp64", "[batch_change]") {
  for (const AggregateMethod method : {AggregateMethod::mean, AggregateMethod::sum}) {
    const Config config = reference_input(ComputeType::fp64, method);
    INFO(method);
    check_seeds(config, shapes_of(config), 50, {1, 2}, 1e-9);
  }
}

TEST_CASE("any sequence of batches and shapes trains the same, fp32", "[batch_change]") {
  for (const AggregateMethod method : {AggregateMethod::mean, AggregateMethod::sum}) {
    const Config config = reference_input(ComputeType::fp32, method);
    INFO(method);
    check_seeds(config, shapes_of(config), 20, {3, 4, 5}, 1e-4);
  }
}

// Only the batch changes: nothing is built anew, so that even the memory stays.
TEST_CASE("another batch alone moves no state and sends one small sum", "[batch_change]") {
  const Config config = reference_input(ComputeType::fp32, AggregateMethod::mean);
  const Plan plan = shapes_of(config)[0];
  Draw draw(7);
  const std::vector<Plan> plans{plan, any_batch(plan, draw), any_batch(plan, draw)};
  Remarks remarks;
  with_trainer(plan, config, [&](Communicator& world, Machine&, Trainer& trainer) {
    const Formation* formation = &trainer.formation();
    for (const index_t number : {1, 2, 0, 2}) {
      const Plan& next = plans[static_cast<std::size_t>(number)];
      (void)trainer.step(kNoFlag);
      world.ledger().clear();
      const ReshapeReport report = trainer.reshape(next);
      const std::string fault = difference(world.ledger(), report.predicted);
      if (!fault.empty()) remarks.add(fault);
      if (&trainer.formation() != formation) remarks.add("there is another formation");
      if (!(trainer.plan() == next)) remarks.add("it has another plan");
      world.ledger().clear();
      const StepReport step = trainer.step(kNoFlag);
      if (const std::string more = difference(world.ledger(), trainer.predicted_step());
          !more.empty())
        remarks.add(more);
      if (number != 2) continue;  // the first step under a plan says so in the step after it
      const StepReport after = trainer.step(kNoFlag);
      if (step.measured.first) remarks.add("the step before was no first one");
      if (!after.measured.first) remarks.add("a first step is not called so");
      if (after.measured.slabs != slab_sequences(next)) remarks.add("it has other slabs");
    }
  });
  CHECK(remarks.all() == "");
}

TEST_CASE("times are gathered every so many steps, and the bytes are as predicted",
          "[batch_change]") {
  Config config = reference_input(ComputeType::fp32, AggregateMethod::mean);
  config.balance.every = 3;
  const Plan plan = shapes_of(config)[2];
  Remarks remarks;
  with_trainer(plan, config, [&](Communicator& world, Machine&, Trainer& trainer) {
    for (index_t step = 1; step <= 7; ++step) {
      world.ledger().clear();
      const StepReport report = trainer.step(kNoFlag);
      const std::string fault = difference(world.ledger(), trainer.predicted_step());
      if (!fault.empty()) remarks.add(fmt::format("step {}: {}", step, fault));
      if (report.times.empty() != (step % 3 != 0)) remarks.add(fmt::format("times in {}", step));
      if (!report.times.empty() && report.measured.step != step - 1)
        remarks.add(fmt::format("step {} reports {}", step, report.measured.step));
    }
  });
  CHECK(remarks.all() == "");
}

TEST_CASE("with adasum whole leaves move between the replicas, and it trains the same",
          "[batch_change]") {
  for (const AggregatePlacement placement : {AggregatePlacement::gain, AggregatePlacement::pre}) {
    Config config = reference_input(ComputeType::fp64, AggregateMethod::adasum);
    config.batch.sequences = 12;
    config.aggregate.placement = placement;
    config.aggregate.algorithm = AggregateAlgorithm::gram;
    config.aggregate.leaves = 2;
    const std::vector<Plan> shapes{shape(config, {{2, 1, 1}, {1, 1, 1}, {1, 2, 1}}),
                                   shape(config, {{1, 2, 1}, {2, 1, 1}, {1, 1, 1}})};
    INFO(placement);
    check_seeds(config, shapes, 20, {8}, 1e-9);
  }
}
