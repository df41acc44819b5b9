// The formulas of what a rank sends (hetero/cost/traffic.hpp) against the ledger of real steps:
// every verb and axis, on all shapes, whatever the plan says.
#include "hetero/cost/traffic.hpp"

#include <ctime>

#include "support/catch.hpp"
#include "support/plan_rig.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

/// What differs between counted and predicted bytes, of two steps, an evaluation, and a step after
/// it.
std::string byte_differences(const Plan& plan, const Config& config) {
  Remarks remarks;
  with_trainer(plan, config, [&](Communicator& world, Machine&, Trainer& trainer) {
    const auto compare = [&](const std::string& what, const Ledger& predicted) {
      const std::string text = difference(world.ledger(), predicted);
      if (!text.empty()) remarks.add(fmt::format("rank {} {}: {}", world.rank(), what, text));
    };
    const auto source = corpus(config);
    const auto number = plan.active_rank(world.rank());
    for (const char* what : {"step 1", "step 2", "step after an evaluation"}) {
      if (what[5] == 'a') {
        world.ledger().clear();
        (void)trainer.evaluate(*source, 7);
        compare("evaluation", number ? evaluation_traffic(plan, plan.mesh().coord_of(*number), 7,
                                                          evaluation_micro(plan))
                                           .ledger()
                                     : idle_evaluation_traffic(plan, world.rank()).ledger());
      }
      world.ledger().clear();
      (void)trainer.step(kNoFlag);
      compare(what, number ? step_traffic(plan, plan.mesh().coord_of(*number)).ledger()
                           : idle_traffic(plan, world.rank()).ledger());
    }
  });
  return remarks.all();
}

void check_bytes(const Plan& plan, const Config& config) {
  INFO(plan.text());
  CHECK(byte_differences(plan, config) == "");
}

using Change = std::function<void(Config&)>;

/// Uneven cuts of every dimension, an empty part among them.
const Grid kUneven{2, 3, 2, {1, 4}, {3, 0, 1}, {2, 1}};

void check_changes(const std::vector<Change>& changes, const Grid& grid, index_t replicas) {
  for (const Change& change : changes)
    for (Config config : {gpt_input(), llama_input(), qwen_input()}) {
      change(config);
      check_bytes(plan_of(config, grid, replicas), config);
    }
}

/// Two replicas of the same cuboid, the second one with other widths.
Plan other_widths(const Config& config) {
  Plan plan = plan_of(config, Grid{2, 1, 2, {}, {}, {}}, 2);
  ReplicaPlan& second = plan.replicas[1];
  const index_t h = plan.model.hidden;
  recut(second.hidden, {0, h / 4, h});
  second.storage = Partition::from_offsets("storage", {0, 1, 4});
  for (Partition& cut : second.tokens) recut(cut, {0, cut.length(), cut.length()});
  plan.check();
  return plan;
}

double seconds_of_cpu() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double evaluations_per_second(const Plan& plan, index_t times) {
  const MeshShape mesh = plan.mesh();
  index_t total = 0;
  const double start = seconds_of_cpu();
  for (index_t at = 0; at < times; ++at)
    total += step_traffic(plan, mesh.coord_of(static_cast<int>(at % mesh.ranks()))).total();
  const double seconds = seconds_of_cpu() - start;
  CHECK(total > 0);
  return static_cast<double>(times) / seconds;
}

}  // namespace

TEST_CASE("and of adapters and of frozen parameters, gathered again or kept, with replicas") {
  const Config adapters = lora_input();
  Config frozen = gpt_input();
  frozen.model.freeze = {"wte.*", "blocks.0.*", "*.mlp.down.weight", "*.attn.proj.bias"};
  Config biases = gpt_input();
  biases.model.freeze = {"*.weight"};  // all matrices, the vectors' buckets are mixed
  for (Config config : {adapters, frozen, biases}) {
    for (const Grid& grid : {Grid{}, kUneven, Grid{1, 2, 2, {}, {}, {}}})
      check_bytes(plan_of(config, grid), config);
    config.mesh.keep = KeepRule::none;
    config.batch.recompute = Recompute::block;
    config.batch.micro = 2;
    config.precision.compute = ComputeType::bf16;
    check_bytes(plan_of(config, kUneven), config);
    config.mesh.attention = AttentionRule::heads;
    check_bytes(plan_of(config, Grid{2, 1, 2, {}, {}, {}}, 2), config);
    config.aggregate.method = AggregateMethod::adasum;
    config.aggregate.leaves = 2;
    config.optimizer.kind = OptimizerKind::lamb;
    check_bytes(plan_of(config, Grid{1, 2, 1, {}, {}, {}}, 2), config);
    check_bytes(other_widths(config), config);
  }
}

TEST_CASE("the bytes of a step are as predicted on every shape") {
  for (const Grid& grid : all_grids())
    for (const index_t replicas : {1, 2, 3}) {
      Config config = replicas == 2 ? llama_input() : gpt_input();
      if (grid.ranks() * replicas > 16) config.model.layers = 1;
      check_bytes(plan_of(config, grid, replicas), config);
    }
}

TEST_CASE("and in any precision, cut in any way, gathered again or kept") {
  check_changes({[](Config& c) { c.precision.compute = ComputeType::bf16; },
                 [](Config& c) {
                   c.precision.compute = ComputeType::bf16;
                   c.precision.reduce = ReduceType::fp32;
                   c.batch.micro = 2;
                 },
                 [](Config& c) {
                   c.batch.micro = 2;
                   c.mesh.keep = KeepRule::none;
                 },
                 [](Config& c) {
                   c.batch.recompute = Recompute::block;
                   c.mesh.keep = KeepRule::none;
                 },
                 [](Config& c) { c.mesh.attention = AttentionRule::heads; },
                 [](Config& c) {
                   c.mesh.attention = AttentionRule::sequences;
                   c.batch.micro = 1;
                 }},
                kUneven, 1);
}

TEST_CASE("and with every optimizer and every way to aggregate") {
  std::vector<Change> changes;
  for (const OptimizerKind kind :
       {OptimizerKind::adamw, OptimizerKind::lamb, OptimizerKind::muon, OptimizerKind::sgd}) {
    changes.push_back([kind](Config& c) { c.optimizer.kind = kind; });
    changes.push_back([kind](Config& c) {
      c.optimizer.kind = kind;
      c.aggregate.method = AggregateMethod::adasum;
      c.aggregate.placement = AggregatePlacement::post;
      c.aggregate.leaves = 2;
    });
  }
  changes.push_back([](Config& c) { c.aggregate.method = AggregateMethod::sum; });
  for (const GroupBy per : {GroupBy::tensor, GroupBy::block, GroupBy::model})
    for (const AggregateAlgorithm algorithm : {AggregateAlgorithm::gram, AggregateAlgorithm::flat})
      changes.push_back([per, algorithm](Config& c) {
        c.aggregate.method = AggregateMethod::adasum;
        c.aggregate.placement = AggregatePlacement::pre;
        c.aggregate.algorithm = algorithm;
        c.aggregate.per = per;
        if (algorithm == AggregateAlgorithm::gram) c.aggregate.wire = WireType::bf16;
        c.batch.shares = {1, 2, 0};
      });
  for (const Change& change : changes)
    for (Config config : {gpt_input(), llama_input(), qwen_input()}) {
      change(config);
      config.model.layers = 1;
      check_bytes(plan_of(config, Grid{2, 1, 2, {1, 2}, {}, {3, 1}}, 3), config);
    }
}

TEST_CASE("and where whole matrices are dealt to unequal ranks") {
  for (Config config : {gpt_input(), llama_input(), qwen_input()}) {
    config.optimizer.kind = OptimizerKind::muon;
    Plan plan = plan_of(config, Grid{2, 1, 2, {1, 2}, {}, {3, 1}}, 2);
    plan.replicas[0].whole = {100, 20, 0, 45};
    plan.replicas[1].whole = {1, 1, 1, 7};
    check_bytes(plan, config);
  }
}

TEST_CASE("and where replicas are cut differently, or ranks are idle") {
  for (const AggregateMethod method : {AggregateMethod::mean, AggregateMethod::adasum})
    for (const index_t leaves : {1, 2})
      for (Config config : {gpt_input(), llama_input(), qwen_input()}) {
        config.aggregate.method = method;
        config.aggregate.leaves = leaves;
        const Plan cuboids = plan_of_cuboids(config, {{2, 1, 1}, {1, 2, 2}, {1, 1, 1}});
        check_bytes(cuboids, config);
        check_bytes(other_widths(config), config);
        Plan idle = plan_of_cuboids(config, {{2, 1, 1}, {1, 1, 2}}, 6);
        idle.place = {5, 1, 2, 4};
        idle.check();
        check_bytes(idle, config);
      }
}

TEST_CASE("and in groups of more than 16 ranks, whose small collectives go in rounds") {
  Config config = gpt_input();
  config.model.layers = 1;
  config.batch.sequences = 7;
  check_bytes(plan_of(config, Grid{3, 3, 2, {}, {}, {}}), config);
  // One axis of 17: parts of unequal size, and empty ones.
  check_bytes(plan_of(config, Grid{17, 1, 1, {}, {}, {}}), config);
  check_bytes(plan_of(config, Grid{1, 17, 1, {}, {}, {}}), config);
  check_bytes(plan_of(config, Grid{1, 1, 17, {}, {}, {}}), config);
  config.aggregate.method = AggregateMethod::adasum;
  check_bytes(plan_of(config, Grid{}, 18), config);
  config.aggregate.algorithm = AggregateAlgorithm::flat;
  check_bytes(plan_of(config, Grid{1, 1, 2, {}, {}, {}}, 9, 20), config);
  config.optimizer.kind = OptimizerKind::lamb;
  check_bytes(plan_of(config, Grid{2, 3, 3, {}, {}, {1, 0, 3}}), config);
}

TEST_CASE("a search can ask for many") {
  Config config = gpt_input();
  config.model.layers = 12;
  config.batch.sequences = 64;
  CHECK(evaluations_per_second(plan_of(config, Grid{2, 2, 2, {}, {}, {}}), 20000) > 20000);
  config.aggregate.method = AggregateMethod::adasum;
  CHECK(evaluations_per_second(plan_of(config, Grid{8, 8, 4, {}, {}, {}}, 4), 20000) > 20000);
}
