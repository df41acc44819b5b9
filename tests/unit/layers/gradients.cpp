// Directional derivative of the whole loss in fp64:
// |(L(w + e v) - L(w - e v)) / 2e - <g, v>| <= 1e-6 |<g, v>|, v random over all parameters.
#include <cmath>

#include "support/catch.hpp"
#include "support/model_rig.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

struct Derivative {
  double analytic = 0, numeric = 0;
};

Derivative derivative(Config config, const Grid& grid, AttentionRule attention, double dropout) {
  set_grid(config, grid);
  config.precision.compute = ComputeType::fp64;
  config.model.dropout = dropout;
  config.mesh.attention = attention;
  Derivative result;
  run_local_ranks(grid.ranks(), [&](Communicator& world) {
    Machine machine(world, test_machine(config));
    const Formation formation(machine, plan_of(config, machine), config.optimizer);
    Transformer& model = formation.model();
    model.allocate();
    const auto weight = [](const std::string& name, index_t index) {
      const RandomKey key{11, stream_of(name)};
      return (name.find("norm") != std::string::npos ? 1.0 : 0.0) + 0.2 * random_normal(key, index);
    };
    const auto direction = [](const std::string& name, index_t index) {
      return random_normal({12, stream_of(name)}, index);
    };
    std::vector<std::int32_t> ids, targets;
    for (index_t at = 0; at < 3 * config.model.context; ++at) {
      ids.push_back(static_cast<std::int32_t>(random_bits({13, 0}, at) % 61));
      targets.push_back(static_cast<std::int32_t>(random_bits({13, 1}, at) % 61));
    }
    const SlabBatch slab(model, formation.mesh(), ids, targets, 3);
    PassInfo pass;
    pass.length = config.model.context;
    const auto sum_over_ranks = [&](double value) {
      world.all_reduce({&value, DType::f64, 1, 1}, ReduceOp::sum).wait_host();
      return value;
    };
    const auto loss_at = [&](double epsilon) {
      set_weights(model, [&](const std::string& name, index_t index) {
        return weight(name, index) + epsilon * direction(name, index);
      });
      model.clear_loss();
      model.train(slab.batch, pass, 1.0, true);
      model.finish_gradients();
      const double loss = sum_over_ranks(model.loss_sum());
      if (epsilon != 0) model.drop_gradients();
      return loss;
    };
    // Of fourth order: third derivatives are large where a small head is normed.
    const double e = 1e-5;
    const double near = loss_at(e) - loss_at(-e), far = loss_at(2 * e) - loss_at(-2 * e);
    const double numeric = (8 * near - far) / (12 * e);
    (void)loss_at(0);
    double dot = 0;
    for_each_element(model, true,
                     [&](const ParamEntry& entry, index_t index, TensorView shard, index_t at) {
                       dot += get(shard, 0, at) * direction(entry.name, index);
                     });
    dot = sum_over_ranks(dot);
    if (world.rank() == 0) result = {dot, numeric};
  });
  return result;
}

void check(const Config& config, const Grid& grid,
           AttentionRule attention = AttentionRule::automatic, double dropout = 0) {
  const Derivative d = derivative(config, grid, attention, dropout);
  INFO(grid.text() << " attention " << attention << " dropout " << dropout << ": analytic "
                   << d.analytic << " numeric " << d.numeric);
  CHECK(std::abs(d.numeric - d.analytic) <= 1e-6 * std::abs(d.analytic));
}

}  // namespace

TEST_CASE("whole-loss gradient in fp64", "[gradients]") {
  for (const Config& config : {tiny_gpt(), tiny_llama(), tiny_qwen3()}) {
    check(config, {});
    check(config, {2, 2, 2, {}, {}, {}}, AttentionRule::sequences);
    check(config, {1, 2, 2, {}, {}, {}}, AttentionRule::heads);
    check(config, {2, 3, 2, {1, 2}, {1, 2, 1}, {3, 1}});
    check(config, {}, AttentionRule::automatic, 0.3);
    check(config, {2, 2, 2, {}, {}, {}}, AttentionRule::automatic, 0.3);
  }
}

TEST_CASE("whole-loss gradient with recomputed blocks", "[gradients]") {
  for (Config config : {tiny_gpt(), tiny_llama(), tiny_qwen3()}) {
    config.batch.recompute = Recompute::block;
    check(config, {}, AttentionRule::automatic, 0.2);
    check(config, {2, 2, 2, {}, {}, {}}, AttentionRule::heads);
    config.mesh.keep = KeepRule::none;
    check(config, {2, 2, 2, {}, {}, {}}, AttentionRule::automatic, 0.2);
  }
}
