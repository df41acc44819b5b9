// The operators of a plan one by one: flops and bytes by hand, and what a measurement holds.
#include "forecast/calibrate/plan_operators.hpp"

#include "hetero/cost/flops.hpp"
#include "support/catch.hpp"
#include "support/plan_rig.hpp"
#include "train/probe/machine_probe.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

PlanOperators measured(const Config& config, const PlanOperatorBudget& budget, int& barriers) {
  PlanOperators found;
  const Plan plan = plan_of(config, 1);
  run_local_ranks(1, [&](Communicator& world) {
    Machine machine(world, test_machine(config));
    with_probe_machine(machine, plan.activation(), [&](const ProbeMachine& means) {
      found = measure_plan_operators(means, plan.compute, step_calls(plan, Coord{}), budget,
                                     [&] { ++barriers; });
    });
  });
  // Beside other programs a rate is known less well: true, and not what is tested here.
  std::erase_if(found.notes, [](const std::string& note) {
    return note.starts_with("the rate of streams is known to");
  });
  return found;
}

PlanOperatorBudget short_budget() {
  PlanOperatorBudget budget;
  budget.seconds = 0.002;
  budget.bytes = 1 << 22;
  budget.stream_bytes = 1 << 20;
  return budget;
}

}  // namespace

TEST_CASE("flops and least bytes of one call") {
  const auto counts = [](OperatorKind kind, ComputeType compute, const OperatorShape& shape) {
    return counts_of(kind, compute, shape);
  };
  // 2 x 10 x 20 x 30 flops; A 300, B 600 and C 200 numbers.
  OperatorCounts one = counts(OperatorKind::matmul, ComputeType::fp32, {10, 20, 30, 0, 1});
  CHECK(one.flops == Approx(12000));
  CHECK(one.bytes == Approx(4 * 1100));
  // A gradient of weights is added to fp32 numbers: read and written.
  one = counts(OperatorKind::matmul, ComputeType::bf16, {10, 20, 30, 1, 0});
  CHECK(one.bytes == Approx(2 * 900 + 2 * 4 * 200));
  // 2 sequences of 8 places, 4 heads of 16 and 2 of keys: queries 128 wide, keys and values 32
  // each.
  one = counts(OperatorKind::attention_forward, ComputeType::fp32, {2, 8, 4, 2, 16});
  CHECK(one.flops == Approx(2 * 2 * (2 * 4 * 8 * 8 / 2) * 16));
  CHECK(one.bytes == Approx(4 * 16 * (4 + 2 * 2 + 4) * 16 + 4 * 16 * 4));
  // 7 numbers of 4 bytes and 15 flops for each weight, in whatever format products are.
  one = counts(OperatorKind::optimizer, ComputeType::bf16, {2800});
  CHECK(one.bytes == Approx(2800));
  CHECK(one.flops == Approx(1500));
  one = counts(OperatorKind::residual, ComputeType::bf16, {600});
  CHECK(one.flops == Approx(100));
}

TEST_CASE("products of all calls are the work of a step") {
  const Config config = gpt_input();
  const Plan plan = plan_of(config, 1);
  double flops = 0;
  for (const OperatorCall& call : step_calls(plan, Coord{}))
    if (call.kind == OperatorKind::matmul)
      flops += call.times * counts_of(call.kind, plan.compute, call.shape).flops;
  CHECK(flops == Approx(static_cast<double>(step_work(plan, Coord{}).matmul)));
}

TEST_CASE("every operator of a plan is timed, and the roofs are above its products") {
  int barriers = 0;
  const PlanOperators found = measured(gpt_input(), short_budget(), barriers);
  CHECK(found.notes.empty());
  CHECK(barriers == std::ssize(found.operators) + 2);
  CHECK(found.stream_rate > 0);
  int products = 0, streams = 0;
  for (const MeasuredOperator& one : found.operators) {
    CHECK(one.seconds > 0);
    if (one.call.kind == OperatorKind::matmul) {
      ++products;
      CHECK(one.counts.flops / one.seconds <= found.matmul_rate);
    }
    streams += one.call.kind >= OperatorKind::norm ? 1 : 0;
  }
  CHECK(products >= 12);
  CHECK(streams >= 6);
}

TEST_CASE("what does not fit the budget is left out, and said") {
  PlanOperatorBudget budget = short_budget();
  budget.shapes = 3;
  int barriers = 0;
  PlanOperators found = measured(gpt_input(), budget, barriers);
  CHECK(found.operators.size() == 3);
  CHECK(barriers == 5);
  REQUIRE(found.notes.size() == 1);
  CHECK_THAT(found.notes[0], Catch::Contains("less work than those shown were not measured"));
  budget = short_budget();
  budget.bytes = 1;
  found = measured(gpt_input(), budget, barriers);
  REQUIRE(!found.notes.empty());
  CHECK_THAT(found.notes[0], Catch::Contains("were not measured"));
  for (const MeasuredOperator& one : found.operators)
    CHECK(one.call.kind >= OperatorKind::norm);  // streams
}
