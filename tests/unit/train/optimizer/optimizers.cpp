// Every optimizer against itself written densely (support/dense_optimizers.hpp): ten steps on one
// rank and on uneven cuboids, with gains by group. Then what it sends and what it keeps.
#include <optional>

#include "hetero/cost/update_traffic.hpp"
#include "run/rank_plan.hpp"
#include "support/catch.hpp"
#include "support/dense_optimizers.hpp"
#include "support/training.hpp"
#include "train/optimizer/optimizer.hpp"
#include "train/step/state_parts.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

constexpr index_t kSteps = 10;

// What gradients count, on the host and on the device: Muon would not notice a constant.
double grad_scale(index_t step) { return 1 / static_cast<double>(step); }
double device_factor(index_t step) { return 0.5 + static_cast<double>(step % 3); }

double lr_of(const OptimizerConfig& options, index_t step) {
  return options.lr * (1 + 0.1 * static_cast<double>(step));
}

// Positions start at 0: a tensor without a norm.
double initial_value(const std::string& name, index_t index) {
  if (name == "wpe.weight") return 0;
  const bool norm = name.find("norm") != std::string::npos;
  return (norm ? 1.0 : 0.0) + 0.1 * random_normal({21, stream_of(name)}, index);
}

// One matrix has no gradient in the first two steps.
double gradient_value(const std::string& name, index_t step, index_t index) {
  if (name == "blocks.1.mlp.down.weight" && step <= 2) return 0;
  const RandomKey key{22 + static_cast<std::uint64_t>(step), stream_of(name)};
  return 0.1 * (random_normal(key, index) + 0.5 * random_normal({21, stream_of(name)}, index));
}

double gain_value(std::string_view group, index_t step) {
  return 0.5 + 0.25 * static_cast<double>((group.size() + static_cast<std::size_t>(step)) % 5);
}

struct Case {
  std::string name;
  OptimizerConfig options;
  DenseRule rule;
  std::vector<std::string> states;
};

std::vector<Case> cases() {
  OptimizerConfig sgd;
  sgd.kind = OptimizerKind::sgd;
  sgd.lr = 0.05;
  OptimizerConfig nesterov = sgd;
  nesterov.nesterov = true;
  nesterov.momentum = 0.7;
  OptimizerConfig adamw;
  adamw.lr = 0.01;
  OptimizerConfig lamb = adamw;
  lamb.kind = OptimizerKind::lamb;
  OptimizerConfig muon = adamw;
  muon.kind = OptimizerKind::muon;
  muon.adamw_lr = 0.004;
  OptimizerConfig shape = muon;
  shape.muon_scale = MuonScale::shape;
  shape.nesterov = true;
  shape.momentum = 0.8;
  shape.newton_schulz_steps = 4;
  return {{"sgd", sgd, dense_sgd, {"momentum"}},
          {"sgd nesterov", nesterov, dense_sgd, {"momentum"}},
          {"adamw", adamw, dense_adamw, {"m", "v"}},
          {"lamb", lamb, dense_lamb, {"m", "v"}},
          {"muon", muon, dense_muon, {"m", "v"}},
          {"muon nesterov shape", shape, dense_muon, {"m", "v"}}};
}

// How the ten steps are run; without `groups` there are no gains.
struct Setting {
  Config config;
  Grid grid;
  index_t replicas = 1;
  std::optional<GroupBy> groups;
  index_t restart_after = 0;  // another optimizer goes on with the state of the first; 0 = never
};

std::string group_of(const std::string& name, GroupBy groups) {
  if (groups == GroupBy::model) return "model";
  if (groups == GroupBy::tensor || !name.starts_with("blocks.")) return name;
  return name.substr(0, name.find('.', 7));
}

struct Outcome {
  GlobalTensors weights;
  bool bytes_agree = true;
  index_t bytes = 0;  // of all ranks in one update
};

void fill_gradients(Transformer& model, index_t step) {
  for (ParamBucket* bucket : model.buckets()) bucket->start_reduce();
  model.finish_gradients();
  for_each_element(model, true,
                   [&](const ParamEntry& entry, index_t index, TensorView shard, index_t at) {
                     set(shard, 0, at, gradient_value(entry.name, step, index));
                   });
}

std::unique_ptr<Optimizer> optimizer_of(const Formation& formation, const Config& config) {
  auto optimizer = make_optimizer(formation.context(), formation.plan(), config.optimizer,
                                  formation.model().buckets());
  for (StateBuffers* state : optimizer->state()) state->clear();
  return optimizer;
}

void hand_over(std::size_t buckets, Optimizer& from, Optimizer& to) {
  const std::vector<StateBuffers*> source = from.state(), target = to.state();
  for (std::size_t kind = 0; kind < source.size(); ++kind)
    for (std::size_t bucket = 0; bucket < buckets; ++bucket)
      if (source[kind]->has(bucket)) target[kind]->adopt(bucket, source[kind]->take(bucket));
}

/// What the optimizer of one replica sends: aggregation of one gradient by mean sends nothing.
Ledger predicted_update(Config config, const Grid& grid, Coord coord) {
  set_grid(config, grid);
  config.mesh.place.clear();
  coord.d = 0;
  const Plan plan = plan_of(config, grid.ranks());
  TrafficTable traffic;
  add_update(RankView(plan, coord), traffic);
  return traffic.ledger();
}

void run_rank(const Setting& setting, Communicator& world, Outcome& outcome) {
  const Config& config = setting.config;
  Machine machine(world, test_machine(config));
  const Formation formation(machine, plan_of(config, machine), config.optimizer);
  const Context& context = formation.context();
  Transformer& model = formation.model();
  model.allocate();
  set_weights(model, initial_value);
  auto optimizer = optimizer_of(formation, config);
  const Tensor factor = context.make(DType::f64, 1, 1, MemoryKind::workspace);
  const ParamGroups groups(model.buckets(), setting.groups.value_or(GroupBy::tensor));
  const Tensor gains = context.make(DType::f64, 1, groups.count(), MemoryKind::workspace);
  for (index_t number = 1; number <= kSteps; ++number) {
    fill_gradients(model, number);
    set(factor, 0, 0, device_factor(number));
    for (index_t group = 0; group < groups.count(); ++group)
      set(gains, 0, group, gain_value(groups.name(group), number));
    OptimizerStep step{number, lr_of(config.optimizer, number), grad_scale(number), factor, {},
                       nullptr};
    if (setting.groups) {
      step.gains = gains;
      step.groups = &groups;
    }
    world.ledger().clear();
    optimizer->update(step);
    {
      const Ledger predicted = predicted_update(config, setting.grid, formation.coord());
      const std::string fault = difference(world.ledger(), predicted);
      const std::lock_guard lock(outcome.weights.mutex);
      if (!fault.empty()) outcome.bytes_agree = false;
      if (number == 1) outcome.bytes += world.ledger().bytes_on("cuboid");
    }
    model.drop_gradients();
    if (number != setting.restart_after) continue;
    auto fresh = optimizer_of(formation, config);
    hand_over(model.buckets().size(), *optimizer, *fresh);
    optimizer = std::move(fresh);
  }
  collect(model, false, outcome.weights);
}

void run(const Setting& setting, Outcome& outcome) {
  run_local_ranks(ranks_of(setting.config.mesh),
                  [&](Communicator& world) { run_rank(setting, world, outcome); });
}

// The whole tensors of a model.
std::vector<Parameter> parameters_of(Config config) {
  set_grid(config, {});
  config.mesh.place.clear();
  const Plan plan = plan_of(config, 1);
  std::vector<Parameter> result;
  for (const BucketTable& bucket :
       parameter_buckets(ModelShape(plan.model, plan.replica(0)), plan.mesh(), {}))
    for (const ParamEntry& entry : bucket.entries) {
      const Dense zeros = Dense::zeros(entry.rows, entry.cols);
      result.push_back({entry.name, entry.rows, entry.cols, entry.decay, zeros, zeros, zeros});
    }
  return result;
}

// Largest |w - dense w| / |dense w - initial w| over all tensors.
double worst_error(const Setting& setting, const DenseRule& rule, const GlobalTensors& weights) {
  double worst = 0;
  for (Parameter& p : parameters_of(setting.config)) {
    const auto count = static_cast<index_t>(p.w.values.size());
    for (index_t at = 0; at < count; ++at)
      p.w.values[static_cast<std::size_t>(at)] = initial_value(p.name, at);
    const std::vector<double> initial = p.w.values;
    std::vector<double> g(p.w.values.size());
    for (index_t step = 1; step <= kSteps; ++step) {
      for (index_t at = 0; at < count; ++at)
        g[static_cast<std::size_t>(at)] =
            grad_scale(step) * device_factor(step) * gradient_value(p.name, step, at);
      const double gain = setting.groups ? gain_value(group_of(p.name, *setting.groups), step) : 1;
      rule(setting.config.optimizer, step, gain * lr_of(setting.config.optimizer, step), g, p);
    }
    std::vector<double> error, update;
    for (std::size_t at = 0; at < initial.size(); ++at) {
      error.push_back(weights.values.at(p.name)[at] - p.w.values[at]);
      update.push_back(p.w.values[at] - initial[at]);
    }
    worst = std::max(worst, norm_of(error) / norm_of(update));
  }
  return worst;
}

Setting setting_of(const Case& test, Config config, const Grid& grid, ComputeType compute,
                   BackendRule backend) {
  set_grid(config, grid);
  config.precision.compute = compute;
  config.precision.backend = backend;
  config.optimizer = test.options;
  Setting setting;
  setting.config = std::move(config);
  setting.grid = grid;
  return setting;
}

void check(const Case& test, const Setting& setting, double bound) {
  INFO(test.name << " on " << setting.grid.text() << " x " << setting.replicas << ", "
                 << setting.config.precision.compute << " " << setting.config.precision.backend
                 << ", gains by " << (setting.groups ? word_of(*setting.groups) : "nothing"));
  Outcome outcome;
  run(setting, outcome);
  CHECK(outcome.bytes_agree);
  CHECK(worst_error(setting, test.rule, outcome.weights) < bound);
}

const Grid kUneven{2, 2, 2, {3, 1}, {1, 2}, {5, 3}};
const Grid kEmptyParts{2, 3, 1, {1, 3}, {2, 0, 1}, {1}};

}  // namespace

TEST_CASE("ten steps equal the dense optimizer in fp64", "[optimizers]") {
  for (const Case& test : cases()) {
    check(test, setting_of(test, tiny_gpt(), {}, ComputeType::fp64, BackendRule::reference), 1e-10);
    check(test, setting_of(test, tiny_gpt(), kUneven, ComputeType::fp64, BackendRule::reference),
          1e-10);
    check(test,
          setting_of(test, tiny_llama(), kEmptyParts, ComputeType::fp64, BackendRule::reference),
          1e-10);
  }
}

TEST_CASE("ten steps equal the dense optimizer in fp32", "[optimizers]") {
  for (const Case& test : cases())
    for (const BackendRule backend : {BackendRule::cpu, BackendRule::reference}) {
      check(test, setting_of(test, tiny_llama(), {}, ComputeType::fp32, backend), 1e-5);
      check(test, setting_of(test, tiny_gpt(), kUneven, ComputeType::fp32, backend), 1e-5);
    }
}

TEST_CASE("gains multiply the learning rate of their groups", "[optimizers]") {
  for (const Case& test : cases())
    for (const GroupBy groups : {GroupBy::tensor, GroupBy::block, GroupBy::model}) {
      Setting setting =
          setting_of(test, tiny_gpt(), kUneven, ComputeType::fp64, BackendRule::reference);
      setting.groups = groups;
      check(test, setting, 1e-10);
    }
}

TEST_CASE("optimizers work within each replica, wherever its ranks sit", "[optimizers]") {
  for (const Case& test : cases()) {
    Setting setting = setting_of(test, tiny_gpt(), {1, 2, 2, {}, {1, 2}, {}}, ComputeType::fp64,
                                 BackendRule::reference);
    setting.replicas = 2;
    setting.config.mesh.replicas = 2;
    setting.config.mesh.place = {5, 2, 7, 0, 3, 6, 1, 4};
    check(test, setting, 1e-10);
  }
}

TEST_CASE("muon's products in bf16 stay near", "[optimizers]") {
  for (const Case& test : cases())
    if (test.options.kind == OptimizerKind::muon)
      check(test, setting_of(test, tiny_llama(), kUneven, ComputeType::bf16, BackendRule::cpu),
            0.03);
}

TEST_CASE("another optimizer goes on from the state, bit by bit", "[optimizers]") {
  for (const Case& test : cases()) {
    INFO(test.name);
    Setting setting =
        setting_of(test, tiny_gpt(), {2, 1, 2, {}, {}, {}}, ComputeType::fp32, BackendRule::cpu);
    Outcome whole, continued;
    run(setting, whole);
    setting.restart_after = 4;
    run(setting, continued);
    CHECK(whole.weights.values == continued.weights.values);
  }
}

TEST_CASE("state is named, and as large as the shares", "[optimizers]") {
  for (const Case& test : cases()) {
    const Setting setting =
        setting_of(test, tiny_gpt(), {1, 1, 2, {}, {}, {}}, ComputeType::fp32, BackendRule::cpu);
    std::mutex mutex;
    run_local_ranks(2, [&](Communicator& world) {
      Machine machine(world, test_machine(setting.config));
      Formation formation(machine, plan_of(setting.config, machine), test.options);
      formation.initialise(1);
      const std::vector<ParamBucket*>& buckets = formation.model().buckets();
      const std::vector<StateSlot> states = formation.update().state();
      HostImage image(formation.context());
      const std::vector<TensorPart> parts = state_parts(formation, image);
      const std::lock_guard lock(mutex);
      INFO(test.name);
      REQUIRE(states.size() == test.states.size());
      for (std::size_t kind = 0; kind < states.size(); ++kind) {
        const std::string& name = states[kind].name;
        CHECK(name == "optimizer/" + test.states[kind]);
        const std::vector<TensorView> shards = states[kind].buffers->views();
        REQUIRE(shards.size() == buckets.size());
        const bool partial = test.options.kind == OptimizerKind::muon && test.states[kind] == "v";
        for (std::size_t at = 0; at < buckets.size(); ++at) {
          const bool none = partial && buckets[at]->name().starts_with("blocks.");
          CHECK((shards[at].data == nullptr) == none);
          CHECK(shards[at].count() == (none ? 0 : buckets[at]->shard_count()));
        }
        CHECK(std::any_of(parts.begin(), parts.end(), [&](const TensorPart& part) {
                return part.name == name + "/blocks.0.mlp.up.weight";
              }) == !partial);
      }
    });
  }
}

TEST_CASE("only lamb and muon send, as much as they must", "[optimizers]") {
  for (const Case& test : cases()) {
    INFO(test.name);
    const Setting setting =
        setting_of(test, tiny_gpt(), kUneven, ComputeType::fp32, BackendRule::cpu);
    Outcome outcome;
    run(setting, outcome);
    CHECK(outcome.bytes_agree);
    index_t tensors = 0, elements = 0;
    for (const Parameter& p : parameters_of(setting.config)) {
      ++tensors;
      if (p.decays && p.name.starts_with("blocks.")) elements += p.rows * p.cols;
    }
    if (test.options.kind == OptimizerKind::lamb) {
      CHECK(outcome.bytes == 8 * 7 * 2 * tensors * 8);  // 8 ranks, two numbers to 7 others
    } else if (test.options.kind == OptimizerKind::muon) {
      CHECK(outcome.bytes > 2 * elements * 4 * 6 / 8);  // there and back, but for the home's part
      CHECK(outcome.bytes < 2 * elements * 4);
    } else {
      CHECK(outcome.bytes == 0);
    }
  }
}

TEST_CASE("trainings with every optimizer are the same on any mesh", "[optimizers]") {
  for (const Case& test : cases()) {
    INFO(test.name);
    Config config = tiny_llama();
    config.precision.backend = BackendRule::cpu;
    config.optimizer = test.options;
    const Run alone = train(config, {}, 1, 12);
    const Run uneven = train(config, kUneven, 1, 12);
    const Run replicas = train(config, {1, 2, 1, {}, {1, 2}, {}}, 2, 12);
    CHECK(uneven.bytes_agree);
    for (std::size_t step = 0; step < alone.losses.size(); ++step) {
      CHECK(uneven.losses[step] == Approx(alone.losses[step]).epsilon(1e-4));
      CHECK(replicas.losses[step] == Approx(alone.losses[step]).epsilon(1e-4));
    }
  }
}

TEST_CASE("dry runs count the bytes of the real ones", "[optimizers]") {
  for (const Case& test : cases()) {
    INFO(test.name);
    const Setting setting =
        setting_of(test, tiny_gpt(), kUneven, ComputeType::fp32, BackendRule::cpu);
    const Plan plan_of_ranks = plan_of(setting.config, setting.grid.ranks());
    for (int rank = 0; rank < plan_of_ranks.ranks; ++rank) {
      const RankPlan plan = simulate_rank(plan_of_ranks, test.options, rank);
      CHECK(difference(plan.counted, plan.predicted).empty());
      const bool sends =
          test.options.kind == OptimizerKind::lamb || test.options.kind == OptimizerKind::muon;
      CHECK((plan.counted.bytes_on("cuboid") > 0) == sends);
    }
  }
}
