// Another plan in the middle of a run (train/step/reshape.hpp): the state is the same to the bit,
// the rest of the run is the same but for rounding, the bytes are as predicted, and no memory is
// lost.
#include <algorithm>
#include <map>

#include "ops/cpu/cpu_ops.hpp"
#include "support/catch.hpp"
#include "support/plan_changes.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

/// Runs with and without the changes: state equal to the bit, losses within 1e-4.
void check_changes(const Changes& changes) {
  Changes unchanged = changes;
  unchanged.after.clear();
  RunOutcome with, without;
  run(changes, with);
  run(unchanged, without);
  CHECK(with.state == "");
  CHECK(with.bytes == "");
  CHECK(with.reset.empty());
  CHECK(largest_difference(with.losses, without.losses) < 1e-4);
  CHECK(with.last.size() == without.last.size());
}

/// Shapes of one run: all have the same batch, model and number of ranks.
struct Shapes {
  Config config = gpt_input();
  int ranks = 4;
  Shapes() { config.batch.sequences = 6; }
  [[nodiscard]] Plan grid(const Grid& grid, index_t replicas = 1) const {
    Plan plan = plan_of(config, grid, replicas, ranks);
    plan.aggregate.reference_batch = static_cast<double>(config.batch.sequences);
    return plan;
  }
  [[nodiscard]] Plan cuboids(const std::vector<Cuboid>& cuboids) const {
    Plan plan = plan_of_cuboids(config, cuboids, ranks);
    plan.aggregate.reference_batch = static_cast<double>(config.batch.sequences);
    return plan;
  }
};

}  // namespace

TEST_CASE("the same plan built anew in the middle of a run changes no bit") {
  for (Config config : {gpt_input(), llama_input(), qwen_input(), lora_input(), tiny_frozen()})
    for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::muon}) {
      const bool whole = !config.model.lora.on() && config.model.freeze.empty();
      config.optimizer.kind = kind == OptimizerKind::muon && !whole ? OptimizerKind::lamb : kind;
      config.batch.micro = 2;
      Changes changes{config, plan_of(config, Grid{2, 1, 1, {1, 2}, {}, {}}, 2, 5), {}, 6};
      RunOutcome without, with;
      run(changes, without);
      changes.after = {{2, changes.start}, {3, changes.start}};
      run(changes, with);
      CHECK(with.state == "");
      CHECK(with.bytes == "");
      CHECK(with.losses == without.losses);
      CHECK(with.last.difference(without.last) == "");
    }
}

TEST_CASE("other owners of whole matrices in the middle of a run") {
  Shapes shapes;
  shapes.config.optimizer.kind = OptimizerKind::muon;
  const Plan even = shapes.grid({2, 2, 1, {}, {}, {}});
  Plan uneven = even;
  uneven.replicas[0].whole = {100, 10, 40, 0};
  check_changes({shapes.config, even, {{2, uneven}, {4, even}}});
}

TEST_CASE("from any shape to any other one: state to the bit, losses but for rounding, bytes") {
  Shapes shapes;
  const Plan one = shapes.grid({});
  const Plan rows = shapes.grid({2, 1, 1, {1, 2}, {}, {}});
  const Plan columns = shapes.grid({1, 2, 1, {}, {}, {}});
  const Plan square = shapes.grid({2, 2, 1, {2, 1}, {1, 3}, {}});
  const Plan depth = shapes.grid({1, 1, 2, {}, {}, {}});
  const Plan three = shapes.grid({3, 1, 1, {}, {}, {}});
  const Plan mixed = shapes.cuboids({{2, 1, 1}, {1, 1, 2}});
  const Plan four = shapes.grid({}, 4);
  const Plan two = shapes.grid({1, 2, 1, {}, {}, {}}, 2);
  Plan heads = shapes.grid({1, 2, 2, {}, {}, {}});
  heads.replicas[0].attention = AttentionCut::heads;
  Plan sequences = heads;
  sequences.replicas[0].attention = AttentionCut::sequences;
  Plan stored = shapes.grid({2, 1, 2, {}, {}, {1, 3}});
  stored.replicas[0].storage = Partition::from_offsets("storage", {0, 1, 4});
  stored.place = {3, 0, 2, 1};
  Plan elsewhere = rows;
  elsewhere.place = {3, 1};
  const std::vector<std::pair<Plan, Plan>> pairs{
      {one, square},     {square, one},     {rows, columns},    {columns, mixed},
      {mixed, three},    {three, four},     {four, mixed},      {two, depth},
      {depth, heads},    {heads, stored},   {stored, two},      {mixed, square},
      {rows, elsewhere}, {elsewhere, four}, {heads, sequences}, {stored, mixed}};
  for (const auto& [from, to] : pairs) {
    INFO(from.mesh().describe() << " -> " << to.mesh().describe());
    check_changes({shapes.config, from, {{4, to}}});
  }
  check_changes({shapes.config, square, {{2, mixed}, {5, elsewhere}}});
}

TEST_CASE("with every optimizer, its state comes along") {
  for (const OptimizerKind kind :
       {OptimizerKind::adamw, OptimizerKind::muon, OptimizerKind::lamb, OptimizerKind::sgd}) {
    Shapes shapes;
    shapes.config = llama_input();
    shapes.config.batch.sequences = 6;
    shapes.config.optimizer.kind = kind;
    INFO(kind);
    check_changes({shapes.config,
                   shapes.grid({2, 2, 1, {2, 1}, {1, 3}, {}}),
                   {{3, shapes.grid({1, 1, 2, {}, {}, {2, 1}}, 2)},
                    {5, shapes.grid({3, 1, 1, {}, {}, {}})}}});
  }
}

// Leaves keep their samples and their numbers: four replicas of one leaf, two of two, and so on.
TEST_CASE("with adasum, the noise and the leaves' own state come along") {
  for (const AggregatePlacement placement :
       {AggregatePlacement::gain, AggregatePlacement::post, AggregatePlacement::pre}) {
    Shapes shapes;
    shapes.config.batch.sequences = 8;
    shapes.config.aggregate.method = AggregateMethod::adasum;
    shapes.config.aggregate.placement = placement;
    const Plan four = shapes.grid({}, 4);
    shapes.config.aggregate.leaves = 2;
    const Plan two = shapes.grid({1, 1, 2, {}, {}, {}}, 2);
    const Plan mixed = shapes.cuboids({{1, 2, 1}, {1, 1, 1}});
    shapes.config.aggregate.leaves = 4;
    const Plan one = shapes.grid({2, 2, 1, {3, 1}, {}, {}});
    INFO(placement);
    check_changes({shapes.config, four, {{2, two}, {4, mixed}, {6, one}}});
    check_changes({shapes.config, one, {{3, mixed}, {5, four}}});
  }
}

TEST_CASE("new leaves begin with a copy of an old one's state") {
  Shapes shapes;
  shapes.config.aggregate.method = AggregateMethod::adasum;
  shapes.config.aggregate.placement = AggregatePlacement::post;
  const Changes changes{
      shapes.config, shapes.grid({1, 2, 1, {}, {}, {}}, 2), {{2, shapes.grid({}, 4)}}, 2};
  RunOutcome grown, same;
  run(changes, grown);
  run({shapes.config, changes.start, {}, 2}, same);
  for (const char* kind : {"m", "v"})
    for (const int leaf : {0, 1, 2, 3}) {
      const auto name = [&](int number) {
        return fmt::format("aggregate/leaf-{}/{}/blocks.1.mlp.up.weight", number, kind);
      };
      CHECK(grown.last.at(name(leaf)) == same.last.at(name(leaf % 2)));
    }
  CHECK(grown.bytes == "");
  CHECK(grown.reset.empty());
}

TEST_CASE("state of another kind starts at 0 and is named") {
  Shapes shapes;
  const Plan mean = shapes.grid({}, 2);
  shapes.config.aggregate.method = AggregateMethod::adasum;
  shapes.config.aggregate.placement = AggregatePlacement::post;
  const Changes changes{shapes.config, mean, {{2, shapes.grid({}, 2)}}, 2};
  RunOutcome outcome;
  run(changes, outcome);
  CHECK(outcome.reset == std::vector<std::string>{"aggregate/leaf-0/m", "aggregate/leaf-1/m",
                                                  "aggregate/leaf-0/v", "aggregate/leaf-1/v",
                                                  "aggregate/noise"});
  const auto& m = outcome.last.at("aggregate/leaf-1/m/wte.weight");
  CHECK(std::count(m.begin(), m.end(), std::uint64_t{0}) == std::ssize(m));
}

TEST_CASE("a noise estimate of other groups starts at 0 and is named; the optimizer goes on") {
  Shapes shapes;
  shapes.config.aggregate.method = AggregateMethod::adasum;
  shapes.config.aggregate.placement = AggregatePlacement::pre;
  const Plan tensors = shapes.grid({}, 2);
  Plan model = tensors;
  model.aggregate.per = tensors.aggregate.per == GroupBy::model ? GroupBy::tensor : GroupBy::model;
  RunOutcome outcome;
  run({shapes.config, tensors, {{2, model}}, 2}, outcome);
  CHECK(outcome.reset == std::vector<std::string>{"aggregate/noise"});
  CHECK(outcome.bytes == "");
  const auto& noise = outcome.last.at("aggregate/noise");
  CHECK(std::count(noise.begin(), noise.end(), std::uint64_t{0}) == std::ssize(noise));
}

namespace {

/// Any plan for `ranks` ranks, by number.
Plan random_plan(const Config& base, int ranks, index_t number) {
  const auto below = [&](index_t stream, index_t n) {
    return static_cast<index_t>(random_bits({17, static_cast<std::uint64_t>(stream)}, number) %
                                static_cast<std::uint32_t>(n));
  };
  Config config = base;
  std::vector<Cuboid> cuboids;
  for (int left = ranks; left > 0;) {
    Cuboid cuboid{1 + below(3 * left, 3), 1 + below(3 * left + 1, 2), 1 + below(3 * left + 2, 2)};
    while (cuboid[0] * cuboid[1] * cuboid[2] > left)
      *std::max_element(cuboid.begin(), cuboid.end()) -= 1;
    cuboids.push_back(cuboid);
    left -= static_cast<int>(cuboid[0] * cuboid[1] * cuboid[2]);
    if (below(50 + left, 3) == 0) break;  // the others are idle
  }
  config.batch.micro = 1 + below(90, 4);
  Plan plan = plan_of_cuboids(config, cuboids, ranks);
  plan.aggregate.reference_batch = 6;
  plan.keep_weights = below(91, 2) == 0;
  plan.recompute = below(92, 2) == 0 ? Recompute::block : Recompute::none;
  for (ReplicaPlan& replica : plan.replicas)
    if (replica.cuboid[2] == 2) recut(replica.hidden, {0, 8 + below(93, 16), 32});
  plan.check();
  return plan;
}

}  // namespace

TEST_CASE("40 random changes of plan lose no memory") {
  constexpr int kRanks = 5;
  constexpr index_t kPlans = 10, kChanges = 40;
  const Shapes shapes;
  std::vector<Plan> plans;
  for (index_t number = 0; number < kPlans; ++number)
    plans.push_back(random_plan(shapes.config, kRanks, number));
  Remarks remarks;
  std::vector<double> losses;
  std::string order;
  with_trainer(
      plans[0], shapes.config, [&](Communicator& world, Machine& machine, Trainer& trainer) {
        std::map<index_t, MemoryAccount> first;
        for (index_t change = 0; change < kChanges; ++change) {
          const auto number = static_cast<index_t>(random_bits({23, 1}, change) % kPlans);
          (void)trainer.reshape(plans[static_cast<std::size_t>(number)]);
          const StepReport report = trainer.step(kNoFlag);
          const MemoryAccount& now = machine.device().memory();
          const MemoryAccount& then = first.emplace(number, now).first->second;
          if (now.live != then.live || now.by_kind != then.by_kind || now.reserved > then.reserved)
            remarks.add(fmt::format("rank {} change {} plan {}: live {} -> {}, reserved {} -> {}",
                                    world.rank(), change, number, then.live, now.live,
                                    then.reserved, now.reserved));
          if (world.rank() != 0) continue;
          losses.push_back(report.loss);
          order += fmt::format("{} ", number);
        }
      });
  INFO("plans " << order << "of kind 17, order of kind 23");
  CHECK(remarks.all() == "");
  RunOutcome unchanged;
  run({shapes.config, shapes.grid({}), {}, kChanges}, unchanged);
  CHECK(largest_difference(losses, unchanged.losses) < 1e-4);
}

TEST_CASE("another plan forgets the matmul primitives of the one before") {
  Shapes shapes;
  shapes.config.precision.compute = ComputeType::bf16;
  std::size_t before = 0, after = 0, later = 0;
  const Plan start = shapes.grid({2, 1, 1, {1, 2}, {}, {}});
  with_trainer(start, shapes.config, [&](Communicator& world, Machine& machine, Trainer& trainer) {
    auto& ops = dynamic_cast<CpuOps&>(machine.ops());
    const auto note = [&](std::size_t& count) {
      if (world.rank() == 0) count = ops.kept();
    };
    (void)trainer.step(kNoFlag);
    note(before);
    (void)trainer.reshape(shapes.grid({1, 2, 1, {}, {}, {}}));
    note(after);
    (void)trainer.step(kNoFlag);
    note(later);
  });
  if (before == 0) WARN("this processor has no bf16 products: nothing is kept");
  CHECK(after == 0);
  CHECK((later > 0) == (before > 0));
}
