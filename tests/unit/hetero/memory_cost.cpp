// memory_cost() against the program: the real trainer on a device that only counts.
#include <fmt/format.h>

#include <array>
#include <random>

#include "hetero/cost/memory.hpp"
#include "hetero/cost/traffic.hpp"
#include "run/rank_plan.hpp"
#include "support/catch.hpp"
#include "support/plan.hpp"

using namespace t3d;

namespace {

constexpr double kTolerance = 0.02;

Config gpt() {
  Config config;
  ModelConfig& m = config.model;
  m.layers = 7;
  m.hidden = 192;
  m.heads = m.kv_heads = 6;
  m.ffn = 768;
  m.vocab = 3001;
  m.context = 64;
  config.batch.sequences = 8;
  return config;
}

Config llama() {
  Config config = gpt();
  ModelConfig& m = config.model;
  m.norm = NormKind::rms;
  m.activation = Activation::swiglu;
  m.position = Position::rope;
  m.bias = false;
  m.tied_embeddings = false;
  m.kv_heads = 3;
  m.ffn = 512;
  return config;
}

Config qwen() {
  Config config = llama();
  ModelConfig& m = config.model;
  m.head_columns = 48;
  m.qk_norm = true;
  m.attention_bias = AttentionBias::qkv;
  return config;
}

struct Shape {
  std::string name;
  Config config;
};

Shape shape(std::string name, Config config, const Cuboid& cuboid, index_t replicas = 1) {
  config.mesh.cuboid = cuboid;
  config.mesh.replicas = replicas;
  return {std::move(name), std::move(config)};
}

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  const auto add = [&](const char* name, const Config& config, const Cuboid& cuboid,
                       index_t replicas = 1) {
    all.push_back(shape(name, config, cuboid, replicas));
  };
  add("one rank", gpt(), {1, 1, 1});
  add("one rank, llama", llama(), {1, 1, 1});
  add("one rank, normed heads", qwen(), {1, 1, 1});
  add("normed heads 2x3x2", qwen(), {2, 3, 2});
  Config c = qwen();
  c.model.lora = {.rank = 8, .targets = {"q", "v", "o", "up"}};
  add("adapters, one rank", c, {1, 1, 1});
  add("adapters 2x3x2", c, {2, 3, 2});
  c.precision.compute = ComputeType::bf16;
  c.batch.micro = 3;
  add("adapters, bf16 2x1x2, micro-batches", c, {2, 1, 2});
  c.mesh.keep = KeepRule::none;
  c.batch.recompute = Recompute::block;
  c.optimizer.kind = OptimizerKind::lamb;
  add("adapters, bf16 1x2x2, recompute, keep none, lamb", c, {1, 2, 2});
  c = gpt();
  c.model.freeze = {"wte.*", "blocks.0.*", "blocks.3.mlp.*", "*.attn.qkv.weight"};
  add("frozen, one rank", c, {1, 1, 1});
  add("frozen 2x2x2", c, {2, 2, 2});
  c.aggregate.method = AggregateMethod::adasum;
  c.aggregate.leaves = 2;
  c.batch.micro = 1;
  add("frozen, adasum, leaves", c, {2, 1, 1}, 2);
  c.aggregate.placement = AggregatePlacement::post;
  add("frozen, adasum post, leaves", c, {1, 1, 2}, 2);
  c = qwen();
  c.batch.recompute = Recompute::block;
  c.precision.compute = ComputeType::bf16;
  c.mesh.attention = AttentionRule::heads;
  c.mesh.keep = KeepRule::none;
  add("normed heads, bf16 2x1x2, heads, recompute, keep none", c, {2, 1, 2});
  c = gpt();
  c.batch.micro = 3;
  add("one rank, micro-batches 3 3 2", c, {1, 1, 1});
  c = llama();
  c.batch.recompute = Recompute::block;
  add("one rank, recompute", c, {1, 1, 1});
  c = gpt();
  c.mesh.tokens = {3, 1};
  c.mesh.outputs = {2, 1};
  add("uneven 2x2x1", c, {2, 2, 1});
  c.mesh.tokens = {};
  c.mesh.contractions = {1, 3};
  add("uneven 1x2x2", c, {1, 2, 2});
  c = llama();
  c.mesh.keep = KeepRule::none;
  add("llama 2x3x2, keep none", c, {2, 3, 2});
  c.batch.micro = 2;
  add("llama 2x1x2, keep none, micro-batches", c, {2, 1, 2});
  c.mesh.keep = KeepRule::all;
  c.batch.recompute = Recompute::block;
  add("llama 2x3x1, keep all, recompute, micro-batches", c, {2, 3, 1});
  c = gpt();
  c.precision.compute = ComputeType::bf16;
  add("bf16 2x1x2", c, {2, 1, 2});
  c.mesh.attention = AttentionRule::heads;
  add("bf16 1x2x2, heads", c, {1, 2, 2});
  add("replicas, mean", gpt(), {2, 1, 1}, 3);
  c = gpt();
  c.model.dropout = 0.1;
  c.aggregate.method = AggregateMethod::adasum;
  c.aggregate.algorithm = AggregateAlgorithm::gram;
  c.aggregate.leaves = 2;
  c.batch.micro = 1;
  add("adasum gram, leaves, dropout", c, {2, 1, 1}, 2);
  c.aggregate.wire = WireType::bf16;
  add("adasum gram, bf16 on the wire", c, {1, 2, 1}, 2);
  c = gpt();
  c.aggregate.method = AggregateMethod::adasum;
  c.aggregate.algorithm = AggregateAlgorithm::flat;
  add("adasum flat", c, {1, 1, 2}, 2);
  c.aggregate.algorithm = AggregateAlgorithm::gram;
  c.aggregate.placement = AggregatePlacement::post;
  c.aggregate.leaves = 2;
  add("adasum post, leaves", c, {2, 1, 1}, 2);
  c = gpt();
  c.optimizer.kind = OptimizerKind::muon;
  add("muon 2x1x2", c, {2, 1, 2});
  c = llama();
  c.precision.compute = ComputeType::bf16;
  c.optimizer.kind = OptimizerKind::muon;
  add("muon bf16, one rank", c, {1, 1, 1});
  c = llama();
  c.optimizer.kind = OptimizerKind::lamb;
  add("lamb 2x2x1", c, {2, 2, 1});
  c = gpt();
  c.optimizer.kind = OptimizerKind::sgd;
  c.batch.sequences = 128;
  c.model.layers = 2;
  add("sgd, more activations than weights", c, {2, 2, 2});
  c = gpt();
  c.mesh.cuboids = {2, 1, 1, 1, 2, 1};
  add("different cuboids, mean", c, {2, 1, 1}, 2);
  c.aggregate.method = AggregateMethod::adasum;
  c.aggregate.algorithm = AggregateAlgorithm::gram;
  add("different cuboids, adasum", c, {2, 1, 1}, 2);
  return all;
}

bool near(index_t got, index_t wanted) {
  return std::abs(static_cast<double>(got - wanted)) <= kTolerance * static_cast<double>(wanted);
}

void check(const Shape& shape, const std::vector<index_t>& whole = {}) {
  Plan plan = test::plan_of(shape.config, test::ranks_of(shape.config.mesh));
  plan.replicas.front().whole = whole;
  const MeshShape mesh = plan.mesh();
  for (int rank = 0; rank < static_cast<int>(mesh.ranks()); ++rank) {
    const RankPlan real = simulate_rank(plan, shape.config.optimizer, rank);
    const MemoryCost cost = memory_cost(plan, real.coord);
    std::string kinds;
    for (std::size_t kind = 0; kind < kMemoryKinds; ++kind)
      kinds += fmt::format(" {} {}/{}", name_of(static_cast<MemoryKind>(kind)), cost.by_kind[kind],
                           real.memory.at_peak[kind]);
    INFO(shape.name << " rank " << rank << ": live " << cost.live_peak << "/"
                    << real.memory.live_peak << " reserved " << cost.tensors_peak << "/"
                    << real.memory.reserved_peak << kinds);
    CHECK(near(cost.live_peak, real.memory.live_peak));
    CHECK(near(cost.tensors_peak, real.memory.reserved_peak));
    CHECK(parameters_at_rest(plan, real.coord) == real.parameters);
    CHECK(near(state_at_rest(plan, real.coord).optimizer,
               real.memory.at_peak[static_cast<std::size_t>(MemoryKind::optimizer)]));
    CHECK(difference(real.counted, step_traffic(plan, real.coord).ledger()).empty());
  }
}

}  // namespace

TEST_CASE("memory is what the program's requests add up to", "[memory]") {
  for (const Shape& shape : shapes()) check(shape);
}

// Whatever goes together: a step of the program takes what the plan says, whoever thought of it.
Shape drawn(std::uint32_t seed) {
  std::mt19937 engine(seed);
  const auto below = [&](index_t bound) {
    return static_cast<index_t>(engine()) % bound;  // the same on every system
  };
  const auto one_of = [&](const auto& values) {
    return values[static_cast<std::size_t>(below(std::ssize(values)))];
  };
  const auto chance = [&](index_t of) { return below(of) == 0; };
  Config c = one_of(std::array{gpt(), llama(), qwen()});
  c.model.layers = 1 + below(8);
  c.model.vocab = 257 + below(6000);
  c.model.ffn = 64 + below(900);
  c.model.context = 8 + below(120);
  c.model.dropout = chance(4) ? 0.1 : 0;
  c.model.tied_embeddings = chance(2);
  if (chance(5)) c.model.lora = {.rank = 1 + below(12), .targets = {"q", "up", "down"}};
  if (chance(5) && !c.model.lora.on())
    c.model.freeze = {one_of(std::array<std::string, 3>{"wte.*", "blocks.0.*", "*.mlp.up.weight"})};
  c.precision.compute = one_of(
      std::array{ComputeType::fp32, ComputeType::fp32, ComputeType::bf16, ComputeType::fp64});
  c.precision.reduce =
      one_of(std::array{ReduceType::automatic, ReduceType::fp32, ReduceType::compute});
  c.batch.sequences = 8 + below(20);
  c.batch.micro = chance(2) ? 0 : 1 + below(5);
  c.batch.recompute = chance(3) ? Recompute::block : Recompute::none;
  c.mesh.keep = one_of(std::array{KeepRule::automatic, KeepRule::all, KeepRule::none});
  c.mesh.attention =
      one_of(std::array{AttentionRule::automatic, AttentionRule::sequences, AttentionRule::heads});
  const bool whole = !c.model.lora.on() && c.model.freeze.empty();  // muon trains no parts
  c.optimizer.kind =
      one_of(std::array{OptimizerKind::adamw, OptimizerKind::lamb, OptimizerKind::sgd,
                        whole ? OptimizerKind::muon : OptimizerKind::adamw});
  const auto side = [&] { return 1 + below(3); };
  const Cuboid cuboid{side(), side(), side()};
  const index_t replicas = one_of(std::array<index_t, 4>{1, 1, 2, 3});
  const auto weights = [&](index_t parts) {
    std::vector<double> all;
    for (index_t at = 0; at < parts; ++at) all.push_back(static_cast<double>(1 + below(4)));
    return all;
  };
  if (chance(2)) {
    c.mesh.tokens = weights(cuboid[0]);
    c.mesh.outputs = weights(cuboid[1]);
    c.mesh.contractions = weights(cuboid[2]);
  }
  if (chance(2)) {
    c.aggregate.method = AggregateMethod::adasum;
    c.aggregate.leaves = 1 + below(3);
    c.aggregate.placement =
        one_of(std::array{AggregatePlacement::automatic, AggregatePlacement::post});
    if (chance(3)) c.aggregate.wire = WireType::bf16;
  }
  if (replicas > 1 && chance(4)) c.batch.shares = weights(replicas);
  if (replicas > 1 && chance(3)) {
    std::vector<Cuboid> cuboids;
    for (index_t d = 0; d < replicas; ++d) cuboids.push_back({side(), side(), side()});
    c.mesh.tokens = c.mesh.outputs = c.mesh.contractions = {};
    test::set_cuboids(c, cuboids);
  }
  return shape(fmt::format("drawn {}", seed), c, cuboid, replicas);
}

TEST_CASE("and of what is drawn", "[memory]") {
  constexpr std::uint32_t kPlans = 120;
  for (std::uint32_t seed = 1; seed <= kPlans; ++seed) check(drawn(seed));
}

TEST_CASE("and where ranks are unequal at whole matrices", "[memory]") {
  Config c = gpt();
  c.optimizer.kind = OptimizerKind::muon;
  check(shape("muon 2x1x2, unequal", c, {2, 1, 2}, 1), {100, 30, 0, 55});
  c = llama();
  c.optimizer.kind = OptimizerKind::muon;
  c.precision.compute = ComputeType::bf16;
  check(shape("muon bf16 3x1x1, unequal", c, {3, 1, 1}, 1), {10, 100, 100});
}
