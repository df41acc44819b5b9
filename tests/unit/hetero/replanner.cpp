// When does a change of plan that moves state pay? The replanner, fed with the reports of steps of
// ranks of known speeds (hetero/balance/replanner.hpp).
#include "hetero/balance/replanner.hpp"

#include "hetero/cost/flops.hpp"
#include "support/catch.hpp"
#include "support/plan_rig.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

Config input(index_t sequences) {
  Config config = gpt_input();
  config.batch.sequences = sequences;
  return config;
}

constexpr double kRate = 1e9;  // of a rank of speed 1, in every class

PlanRequest request_of(const Plan& plan, index_t sequences) {
  PlanRequest request;
  request.recipe.base = plan;
  request.recipe.sequences = sequences;
  request.replicas = std::ssize(plan.replicas);
  for (const ReplicaPlan& replica : plan.replicas) request.cuboids.push_back(replica.cuboid);
  return request;
}

Speeds speeds_of(const std::vector<double>& speeds) {
  Speeds result;
  for (const double speed : speeds) {
    RankSpeed rank;
    for (TimeCurve& curve : rank.curves) curve = TimeCurve::of_rate(speed * kRate);
    result.ranks.push_back(rank);
  }
  return result;
}

RankFacts facts_of(std::size_t ranks) {
  return {std::vector<bool>(ranks), std::vector<index_t>(ranks), std::vector<bool>(ranks)};
}

/// What a step under `plan` reports where ranks have these speeds.
StepReport report_of(const Plan& plan, const std::vector<double>& speeds) {
  StepReport report;
  report.measured = {1, 0, slab_sequences(plan), false};
  report.times.resize(speeds.size());
  const std::vector<int> active = plan.active();
  for (std::size_t number = 0; number < active.size(); ++number) {
    const auto rank = static_cast<std::size_t>(active[number]);
    const StepWork work = step_work(plan, plan.mesh().coord_of(static_cast<int>(number)));
    const double rate = speeds[rank] * kRate;
    RankTimes& times = report.times[rank];
    times.matmul = work_of(work, WorkClass::matmul) / rate;
    times.attention = work_of(work, WorkClass::attention) / rate;
    times.other = work_of(work, WorkClass::streamed) / rate;
    times.own = times.cpu = times.matmul + times.attention + times.other;
  }
  return report;
}

/// Steps until the first proposal, at most `most`; its plan.
std::pair<index_t, std::optional<Plan>> wait_for(Replanner& replanner, const Plan& plan,
                                                 const std::vector<double>& speeds, double price,
                                                 index_t most) {
  for (index_t step = 1; step <= most; ++step)
    if (auto next = replanner.observe(report_of(plan, speeds), plan, price)) return {step, next};
  return {most, std::nullopt};
}

const BalanceOptions kModel{};

}  // namespace

TEST_CASE("slow ranks of one cuboid get narrower features once the loss has paid for it",
          "[replanner]") {
  Config config = input(4);
  config.model.hidden = 256, config.model.heads = 16, config.model.kv_heads = 16;
  config.model.ffn = 1024;
  const Plan plan = plan_of(config, Grid{1, 2, 2, {}, {}, {}});
  const std::vector<double> speeds{0.25, 0.25, 1, 1};
  const double step = predict_step(plan, speeds_of(speeds)).step;

  Replanner cheap(kModel, request_of(plan, 4), speeds_of({1, 1, 1, 1}), facts_of(4));
  const auto [soon, better] = wait_for(cheap, plan, speeds, step, 200);
  REQUIRE(better);
  CHECK(predict_step(*better, speeds_of(speeds)).step < 0.7 * step);
  CHECK(better->mesh().describe() == plan.mesh().describe());

  Replanner dear(kModel, request_of(plan, 4), speeds_of({1, 1, 1, 1}), facts_of(4));
  const auto [late, same] = wait_for(dear, plan, speeds, 20 * step, 200);
  REQUIRE(same);
  CHECK(*same == *better);
  // The loss of a step is part of a step: twenty times the price takes twenty times as long.
  CHECK(late - 20 > 10 * (soon - 20));

  // Under the better plan there is nothing to gain.
  cheap.restart();
  CHECK_FALSE(wait_for(cheap, *better, speeds, step / 100, 100).second);
}

TEST_CASE("equal ranks, first steps and times of another plan propose nothing", "[replanner]") {
  const Plan plan = plan_of(input(4), Grid{1, 2, 2, {}, {}, {}});
  Replanner replanner(kModel, request_of(plan, 4), speeds_of({1, 1, 1, 1}), facts_of(4));
  CHECK_FALSE(wait_for(replanner, plan, {1, 1.02, 0.99, 1}, 0, 100).second);
  StepReport first = report_of(plan, {0.2, 0.2, 1, 1});
  first.measured.first = true;
  StepReport stale = report_of(plan, {0.2, 0.2, 1, 1});
  stale.measured.slabs = {3};
  for (int step = 0; step < 100; ++step) {
    CHECK_FALSE(replanner.observe(first, plan, 0));
    CHECK_FALSE(replanner.observe(stale, plan, 0));
  }
}

TEST_CASE("of ranks that share cores CPU time counts", "[replanner]") {
  Config config = input(4);
  config.model.hidden = 256, config.model.heads = 16, config.model.kv_heads = 16;
  const Plan plan = plan_of(config, Grid{1, 2, 2, {}, {}, {}});
  RankFacts facts = facts_of(4);
  facts.crowded.assign(4, true);
  Replanner replanner(kModel, request_of(plan, 4), speeds_of({1, 1, 1, 1}), facts);
  StepReport report = report_of(plan, {0.25, 0.25, 1, 1});
  const StepReport equal = report_of(plan, {1, 1, 1, 1});
  for (std::size_t rank = 0; rank < 4; ++rank) report.times[rank].cpu = equal.times[rank].own;
  for (int step = 0; step < 100; ++step) CHECK_FALSE(replanner.observe(report, plan, 0));
}
