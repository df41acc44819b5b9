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

/// What a step under `plan` reports where ranks have these speeds, and ends `later` times later
/// than computing alone would have it.
StepReport report_of(const Plan& plan, const std::vector<double>& speeds, index_t step = 1,
                     double later = 1) {
  StepReport report;
  report.measured = {step, 0, 0, slab_sequences(plan), false};
  report.times.resize(speeds.size());
  const std::vector<int> active = plan.active();
  for (std::size_t number = 0; number < active.size(); ++number) {
    const auto rank = static_cast<std::size_t>(active[number]);
    const StepWork work = step_work(plan, plan.mesh().coord_of(static_cast<int>(number)));
    const double rate = speeds[rank] * kRate;
    RankTimes& times = report.times[rank];
    times.matmul = work_of(work, WorkClass::matmul) / rate;
    times.attention = work_of(work, WorkClass::attention) / rate;
    times.whole = work_of(work, WorkClass::whole) / rate;
    times.other = work_of(work, WorkClass::streamed) / rate + times.whole;
    times.own = times.cpu = times.matmul + times.attention + times.other;
  }
  for (RankTimes& times : report.times) times.step = later * report.max_own_seconds();
  return report;
}

/// Steps until the first proposal, at most `most`; its plan.
std::pair<index_t, std::optional<Plan>> wait_for(Replanner& replanner, const Plan& plan,
                                                 const std::vector<double>& speeds, double price,
                                                 index_t most, double later = 1) {
  for (index_t step = 1; step <= most; ++step)
    if (auto next = replanner.observe(report_of(plan, speeds, step, later), plan, price))
      return {step, next};
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

TEST_CASE("features cut by a wrong probe are looked at again after twenty steps", "[replanner]") {
  Config config = input(4);
  config.model.hidden = 256, config.model.heads = 16, config.model.kv_heads = 16;
  config.model.ffn = 1024;
  const Plan even = plan_of(config, Grid{1, 2, 1, {}, {}, {}});
  const Speeds probed = speeds_of({0.4, 1});
  const Plan lopsided = plan_shape(request_of(even, 4), probed).plan;
  REQUIRE(predict_step(lopsided, speeds_of({1, 1})).step >
          1.2 * predict_step(even, speeds_of({1, 1})).step);
  Replanner replanner(kModel, request_of(even, 4), probed, facts_of(2));
  const double step = predict_step(even, speeds_of({1, 1})).step;
  const auto [steps, next] = wait_for(replanner, lopsided, {1, 1}, step, 100);
  REQUIRE(next);
  CHECK(steps <= 25);
  CHECK(predict_step(*next, speeds_of({1, 1})).step < 1.02 * step);
}

TEST_CASE("equal ranks, first steps and times of another plan propose nothing", "[replanner]") {
  const Plan plan = plan_of(input(4), Grid{1, 2, 2, {}, {}, {}});
  Replanner replanner(kModel, request_of(plan, 4), speeds_of({1, 1, 1, 1}), facts_of(4));
  CHECK_FALSE(wait_for(replanner, plan, {1, 1.02, 0.99, 1}, 0, 100).second);
  StepReport first = report_of(plan, {0.2, 0.2, 1, 1});
  first.measured.first = true;
  StepReport stale = report_of(plan, {0.2, 0.2, 1, 1});
  stale.measured.plan = -1;
  for (int step = 0; step < 100; ++step) {
    first.measured.step = stale.measured.step = step;
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
  for (report.measured.step = 0; report.measured.step < 100; ++report.measured.step)
    CHECK_FALSE(replanner.observe(report, plan, 0));
}

TEST_CASE("a change that measures worse than before is taken back, and not asked for soon again",
          "[replanner]") {
  Config config = input(4);
  config.model.hidden = 256, config.model.heads = 16, config.model.kv_heads = 16;
  config.model.ffn = 1024;
  const Plan plan = plan_of(config, Grid{1, 2, 2, {}, {}, {}});
  const std::vector<double> speeds{0.25, 0.25, 1, 1};
  for (const bool worse : {false, true}) {
    Replanner replanner(kModel, request_of(plan, 4), speeds_of({1, 1, 1, 1}), facts_of(4));
    const auto [soon, better] = wait_for(replanner, plan, speeds, 1e-9, 200);
    REQUIRE(better);
    replanner.taken();
    // Messages that nobody predicted, say.
    const auto [late, back] = wait_for(replanner, *better, speeds, 1e-9, 200, worse ? 5 : 1);
    CHECK(back.has_value() == worse);
    if (!worse) continue;
    CHECK(*back == plan);
    CHECK(late == 20);
    CHECK_THAT(replanner.reason(), contains("taken back"));
    replanner.taken();
    const auto [again, same] = wait_for(replanner, plan, speeds, 1e-9, 200);
    CHECK(same == better);
    CHECK(again >= 5 * 20);
  }
}

TEST_CASE("an open shape changes where that gains much, and stays once the user has asked for one",
          "[replanner]") {
  Config config = input(16);
  const Plan plan = plan_of(config, Grid{1, 2, 2, {}, {}, {}});
  const std::vector<double> speeds{0.1, 1, 1, 1};
  PlanRequest open = request_of(plan, 16);
  open.cuboids.clear();
  Replanner closed(kModel, request_of(plan, 16), speeds_of({1, 1, 1, 1}), facts_of(4));
  const auto within = wait_for(closed, plan, speeds, 0, 200).second;
  Replanner free(kModel, open, speeds_of({1, 1, 1, 1}), facts_of(4));
  const auto beyond = wait_for(free, plan, speeds, 0, 200).second;
  REQUIRE(beyond);
  CHECK(beyond->mesh().describe() != plan.mesh().describe());
  const double reached = predict_step(*beyond, speeds_of(speeds)).step;
  CHECK(reached < 0.9 * predict_step(plan, speeds_of(speeds)).step);
  if (within) {
    CHECK(within->mesh().describe() == plan.mesh().describe());
    CHECK(reached < predict_step(*within, speeds_of(speeds)).step);
  }
  free.taken();
  free.keep_shape();
  CHECK_FALSE(wait_for(free, plan, speeds, 0, 200).second.value_or(plan).mesh().describe() !=
              plan.mesh().describe());
}

TEST_CASE("other replicas only under the mean", "[replanner]") {
  for (const AggregateMethod method : {AggregateMethod::mean, AggregateMethod::adasum}) {
    Config config = input(16);
    config.aggregate.method = method;
    const Plan plan = plan_of(config, Grid{1, 2, 2, {}, {}, {}});
    PlanRequest open = request_of(plan, 16);
    open.cuboids.clear();
    open.replicas.reset();
    Replanner replanner(kModel, open, speeds_of({1, 1, 1, 1}), facts_of(4));
    const auto next = wait_for(replanner, plan, {0.1, 1, 1, 1}, 0, 200).second;
    REQUIRE(next);
    if (method == AggregateMethod::adasum) CHECK(next->replicas.size() == 1);
  }
}

TEST_CASE("a loss that is found now and then does not add up for ever", "[replanner]") {
  Config config = input(4);
  config.model.hidden = 256, config.model.heads = 16, config.model.kv_heads = 16;
  config.model.ffn = 1024;
  const Plan plan = plan_of(config, Grid{1, 2, 2, {}, {}, {}});
  Replanner replanner(kModel, request_of(plan, 4), speeds_of({1, 1, 1, 1}), facts_of(4));
  const double step = predict_step(plan, speeds_of({1, 1, 1, 1})).step;
  // A third of the time two ranks are slower: what is lost then is less than the price each time.
  for (index_t at = 1; at <= 900; ++at) {
    const bool slow = at % 60 >= 40;
    const std::vector<double> speeds =
        slow ? std::vector<double>{0.7, 0.7, 1, 1} : std::vector<double>{1, 1, 1, 1};
    CHECK_FALSE(replanner.observe(report_of(plan, speeds, at), plan, 12 * step));
  }
}

TEST_CASE("a rank that lost its work is known by the speed that it was last measured with",
          "[replanner]") {
  const Plan all = plan_of(input(16), Grid{4, 1, 1, {}, {}, {}});
  const Plan without = plan_of(input(16), Grid{3, 1, 1, {}, {}, {}}, 1, 4);
  PlanRequest open = request_of(all, 16);
  open.cuboids.clear();
  Replanner replanner(kModel, open, speeds_of({1, 1, 1, 1}), facts_of(4));
  const std::vector<double> start{1, 1, 1, 1}, later{1, 1, 1, 0.025};
  for (index_t step = 1; step <= 12; ++step)
    CHECK_FALSE(replanner.observe(report_of(all, step < 8 ? start : later, step), all, 1e9));
  replanner.restart();  // somebody else has left it out
  CHECK_FALSE(wait_for(replanner, without, later, 1e-9, 100).second);
  const Speeds known = replanner.measured(without);
  for (const WorkClass work : {WorkClass::matmul, WorkClass::streamed}) {
    const auto kind = static_cast<std::size_t>(work);
    const double ratio =
        known.ranks[3].curves[kind].seconds(1e9) / known.ranks[0].curves[kind].seconds(1e9);
    CHECK(ratio > 39);
    CHECK(ratio < 41);
  }
}

TEST_CASE("why a plan is kept that could be faster is told once", "[replanner]") {
  Config config = input(4);
  config.model.hidden = 256, config.model.heads = 16, config.model.kv_heads = 16;
  config.model.ffn = 1024;
  const Plan plan = plan_of(config, Grid{1, 2, 2, {}, {}, {}});
  const auto told = [&](const std::vector<double>& speeds) {
    Replanner replanner(kModel, request_of(plan, 4), speeds_of({1, 1, 1, 1}), facts_of(4));
    std::vector<std::string> all;
    for (index_t step = 1; step <= 90; ++step) {
      CHECK_FALSE(replanner.observe(report_of(plan, speeds, step), plan, 1e9));
      if (std::string text = replanner.kept(); !text.empty()) all.push_back(std::move(text));
    }
    return all;
  };
  CHECK(told({1, 1, 1, 1}).empty());
  const std::vector<std::string> slow = told({0.25, 0.25, 1, 1});
  REQUIRE(slow.size() == 1);
  CHECK_THAT(slow.front(), contains("the change costs"));
}

TEST_CASE("whole matrices leave a rank that is slow at them", "[replanner]") {
  Config config = input(6);
  config.model.layers = 4;
  config.optimizer.kind = OptimizerKind::muon;
  const Plan plan = plan_of(config, Grid{3, 1, 1, {}, {}, {}});
  StepReport report = report_of(plan, {1, 1, 1});
  RankTimes& slow = report.times[1];
  slow.other += 3 * slow.whole, slow.own += 3 * slow.whole, slow.whole *= 4;
  Replanner replanner(kModel, request_of(plan, 6), speeds_of({1, 1, 1}), facts_of(3));
  std::optional<Plan> better;
  for (report.measured.step = 0; report.measured.step < 100 && !better; ++report.measured.step)
    better = replanner.observe(report, plan, 0);
  REQUIRE(better);
  std::vector<index_t> whole(3);
  for (std::size_t slot = 0; slot < 3; ++slot)
    whole[better->place.empty() ? slot : static_cast<std::size_t>(better->place[slot])] =
        better->replicas[0].whole[slot];
  CHECK(whole == std::vector<index_t>{100, 25, 100});
}
