// Predicted step time against arithmetic by hand.
#include "hetero/planner/step_seconds.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "hetero/cost/exposed_messages.hpp"
#include "hetero/cost/traffic.hpp"
#include "hetero/planner/message_seconds.hpp"
#include "support/catch.hpp"
#include "support/planner_case.hpp"

namespace t3d::test {
namespace {

bool near(double got, double wanted) { return std::abs(got - wanted) <= 1e-9 * std::abs(wanted); }

Plan even_plan(const PlanRecipe& recipe, index_t replicas, const Cuboid& cuboid) {
  return build_plan(recipe, even_shape(recipe, replicas, cuboid));
}

}  // namespace

TEST_CASE("a step lasts as long as the slowest slab's ranks, class by class") {
  const Plan plan = even_plan(small_recipe(4, 8), 1, {2, 2, 1});
  Speeds speeds = speeds_of({1, 1, 1, 1});
  speeds.ranks[2].curve(WorkClass::matmul) = TimeCurve::of_rate(1e10);
  speeds.ranks[3].curve(WorkClass::attention) = TimeCurve::of_rate(1e9);
  const StepWork work = step_work(plan, {0, 1, 0, 0});
  const StepSeconds step = predict_step(plan, speeds);
  const double streamed = static_cast<double>(work.streamed) / 1e10;
  const double matmul = static_cast<double>(work.matmul);
  const double attention = static_cast<double>(work.attention);
  // Shards at rest differ by a few elements.
  CHECK(std::abs(step.step / (matmul / 1e10 + attention / 1e9 + streamed) - 1) < 1e-3);
  CHECK(step.compute() == step.step);
  CHECK(near(step.own[2], speeds.ranks[2].seconds(work)));
  CHECK(step.slowest_slot() == 2);
  CHECK(step.own.size() == 4);
}

TEST_CASE("ranks with as much work in all wait for each other at each product") {
  // Rank 0 has more of the feed-forward part, rank 1 more heads.
  PlanShape shape = even_shape(small_recipe(4, 8), 1, {1, 2, 1});
  shape.replicas[0].ffn = Partition::from_sizes("ffn", std::vector<index_t>{1024 + 512, 512});
  const PlanRecipe recipe = small_recipe(2, 8);
  const Plan plan = build_plan(recipe, shape);
  const std::array<StepWork, 2> work{step_work(plan, {0, 0, 0, 0}), step_work(plan, {0, 0, 1, 0})};
  REQUIRE(work[0].feed_forward == 3 * work[1].feed_forward);
  REQUIRE(work[0].around_attention == work[1].around_attention);
  Speeds speeds = speeds_of({1, 1});
  const double rate = 1e10,
               part = static_cast<double>(work[1].matmul) / static_cast<double>(work[0].matmul);
  for (std::size_t rank = 0; rank < 2; ++rank)  // both compute products for as long
    speeds.ranks[rank].curve(WorkClass::matmul) =
        TimeCurve::of_rate(rank == 0 ? rate : rate * part);
  const double all = static_cast<double>(work[0].matmul) / rate;
  const double feed = static_cast<double>(work[0].feed_forward) / rate;
  const double others = static_cast<double>(work[1].matmul - work[1].feed_forward) / (rate * part);
  const double rest = predict_step(plan, speeds).compute() - feed - others;
  double attention_and_streams = 0;
  for (const WorkClass kind : {WorkClass::attention, WorkClass::streamed})
    attention_and_streams +=
        std::max(speeds.ranks[0].seconds(kind, work[0]), speeds.ranks[1].seconds(kind, work[1]));
  CHECK(feed + others > 1.1 * all);
  CHECK(std::abs(rest - attention_and_streams) < 1e-3 * all);
}

TEST_CASE("replicas are compared, and ranks are found by their place") {
  const PlanRecipe recipe = small_recipe(5, 8);
  PlanShape shape = even_shape(recipe, 2, {2, 1, 1});
  shape.place = {4, 2, 0, 1};
  const Plan plan = build_plan(recipe, shape);
  const StepSeconds step = predict_step(plan, speeds_of({0.5, 1, 1, 0.01, 1}));
  CHECK(step.replicas.size() == 2);
  CHECK(std::abs(step.replicas[1].compute / step.replicas[0].compute - 2) < 1e-3);
  CHECK(step.step == step.replicas[1].compute);
  CHECK(step.slowest_slot() == 2);
  CHECK(predict_step(plan, speeds_of({1, 1, 0, 0.01, 1})).step ==
        std::numeric_limits<double>::infinity());
  CHECK_THROWS_AS(predict_step(plan, speeds_of({1, 1})), Error);
}

TEST_CASE("every slab's work is its own: micro-batches, widths, storage") {
  PlanRecipe recipe = small_recipe(12, 13);
  recipe.micro = 3;
  PlanShape shape = even_shape(recipe, 2, {3, 2, 1});
  shape.replicas[0].token_speeds = {3, 2, 1};
  shape.replicas[0].storage = {1, 0, 2};
  shape.replicas[1].ffn = Partition::from_sizes("ffn", std::vector<index_t>{1024 + 512, 512});
  for (const OptimizerKind optimizer : {OptimizerKind::adamw, OptimizerKind::muon}) {
    recipe.base.optimizer = optimizer;
    const Plan plan = build_plan(recipe, shape);
    const Speeds speeds = speeds_of({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
    const StepSeconds step = predict_step(plan, speeds);
    for (int slot = 0; slot < 12; ++slot) {
      const auto at = static_cast<std::size_t>(slot);
      const StepWork work = step_work(plan, plan.mesh().coord_of(slot));
      CHECK(std::abs(step.own[at] / speeds.ranks[at].seconds(work) - 1) < 1e-3);
    }
  }
}

TEST_CASE("whole matrices take as long as the slowest of all ranks of a replica") {
  PlanRecipe recipe = small_recipe(3, 12);
  recipe.base.optimizer = OptimizerKind::muon;
  PlanShape shape = even_shape(recipe, 1, {3, 1, 1});
  shape.replicas[0].token_speeds = {2, 1, 1};
  shape.replicas[0].whole = {10, 60, 30};
  const Plan plan = build_plan(recipe, shape);
  const Speeds speeds = speeds_of({1, 1, 1});
  double batch = 0, matrices = 0;
  for (index_t i = 0; i < 3; ++i) {
    StepWork work = step_work(plan, {0, i, 0, 0});
    matrices = std::max(matrices, speeds.ranks[0].seconds(WorkClass::whole, work));
    work.whole = 0;
    batch = std::max(batch, speeds.ranks[0].seconds(work));
  }
  const StepSeconds step = predict_step(plan, speeds);
  CHECK(near(step.step, batch + matrices));
  CHECK(near(step.replicas[0].layers, batch));  // weights' messages do not travel behind the update
}

TEST_CASE("messages inside a slab are waited for, weights travel behind the products of GPUs") {
  const PlanRecipe recipe = small_recipe(8, 8);
  const Plan plan = even_plan(recipe, 1, {2, 2, 2});
  Speeds speeds = speeds_of(std::vector<double>(8, 1.0));
  speeds.inside = {0, 1e-9};
  const TrafficTable traffic = step_traffic(plan, {0, 0, 0, 0});
  const auto bytes = [&](Group group) { return 1e-9 * static_cast<double>(traffic.on(group)); };
  const double slab = bytes(Group::j) + bytes(Group::k) + bytes(Group::jk),
               weights = bytes(Group::i) + bytes(Group::ij) + bytes(Group::ik);
  StepSeconds step = predict_step(plan, speeds);
  REQUIRE(weights < step.compute());
  CHECK(near(step.replicas[0].messages, slab + weights));  // CPUs copy with the cores that compute
  CHECK(near(step.update_messages, bytes(Group::world)));
  CHECK(near(step.step, step.compute() + step.replicas[0].messages + step.update_messages));
  for (RankSpeed& rank : speeds.ranks) rank.device = "gpu";
  step = predict_step(plan, speeds);
  CHECK(near(step.replicas[0].messages, slab + (1 - kHidden) * weights));
  speeds.ranks[3].device = "cpu";  // the others wait for it
  CHECK(near(predict_step(plan, speeds).replicas[0].messages, slab + weights));
  speeds.ranks[3].device = "gpu";
  // So slow that products do not hide the weights.
  speeds.inside = {0, 1e-6};
  step = predict_step(plan, speeds);
  CHECK(near(step.replicas[0].messages, 1000 * (slab + weights) - step.compute()));
}

TEST_CASE("a latency for each message that follows another, by the links between nodes") {
  const PlanRecipe recipe = small_recipe(4, 4);
  const Plan plan = even_plan(recipe, 1, {1, 4, 1});
  Speeds speeds = speeds_of({1, 1, 1, 1});
  speeds.inside = {1e-6, 0};
  speeds.between = {1e-3, 0};
  // 4 layers, 8 collectives over j, 3 other ranks; one over j and k, two of vectors over i and j.
  CHECK(near(predict_step(plan, speeds).replicas[0].messages, 1e-6 * 3 * (4 * 8 + 1 + 2)));
  for (const int rank : {2, 3}) speeds.ranks[static_cast<std::size_t>(rank)].node = "other";
  CHECK(near(predict_step(plan, speeds).replicas[0].messages, 1e-3 * 3 * (4 * 8 + 1 + 2)));
  const Plan pairs = even_plan(recipe, 2, {1, 2, 1});
  const StepSeconds step = predict_step(pairs, speeds);
  CHECK(near(step.replicas[0].messages, 1e-6 * (4 * 8 + 1 + 2)));
  CHECK(step.update_messages > 1e-3);
}

TEST_CASE("the bound is the work over the sum of speeds where ranks differ by one factor") {
  const Plan plan = even_plan(small_recipe(4, 8), 4, {1, 1, 1});
  const Speeds speeds = speeds_of({1, 1, 0.5, 0.25});
  const StepSeconds step = predict_step(plan, speeds);
  const double one = speeds.ranks[0].seconds(step_work(plan, {0, 0, 0, 0}));
  CHECK(near(step.bound, 4 * one / 2.75));
  CHECK(near(step.step, 4 * one));
  CHECK(near(step.efficiency(), 1 / 2.75));
}

TEST_CASE("and below any division where each is good at something else") {
  Speeds speeds;
  for (const auto& [matmul, attention] : {std::pair{3.0, 1.0}, {1.0, 2.0}, {1.0, 1.0}}) {
    RankSpeed rank;
    rank.curve(WorkClass::matmul) = TimeCurve::of_rate(matmul);
    rank.curve(WorkClass::attention) = TimeCurve::of_rate(attention);
    speeds.ranks.push_back(rank);
  }
  const double bound = work_bound({6, 4, 0, 0}, speeds);
  double best = std::numeric_limits<double>::infinity();
  constexpr int kSteps = 24;
  const auto part = [](int n) { return static_cast<double>(n) / kSteps; };
  for (int a = 0; a <= kSteps; ++a)
    for (int b = 0; a + b <= kSteps; ++b)
      for (int c = 0; c <= kSteps; ++c)
        for (int d = 0; c + d <= kSteps; ++d)
          best =
              std::min(best, std::max({6 * part(a) / 3 + 4 * part(c), 6 * part(b) + 4 * part(d) / 2,
                                       6 * part(kSteps - a - b) + 4 * part(kSteps - c - d)}));
  CHECK(bound <= best);
  CHECK(bound > 0.85 * best);
}

}  // namespace t3d::test
