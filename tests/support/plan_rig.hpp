// Plans made from small inputs, and trainings that run from plans, ranks as threads of the test.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "app/commands/setup.hpp"
#include "support/rank_context.hpp"
#include "train/step/trainer.hpp"

namespace t3d::test {

inline Config gpt_input() {
  Config config;
  ModelConfig& m = config.model;
  m.layers = 2;
  m.hidden = 32;
  m.heads = m.kv_heads = 4;
  m.ffn = 48;
  m.vocab = 61;
  m.context = 8;
  config.run.steps = 20;
  config.batch.sequences = 5;
  config.precision.backend = BackendRule::cpu;
  config.mesh.device = DeviceRule::cpu;
  config.debug.threads = 1;
  return config;
}

inline Config llama_input() {
  Config config = gpt_input();
  ModelConfig& m = config.model;
  m.hidden = 48;
  m.heads = 6;
  m.kv_heads = 2;
  m.ffn = 40;
  m.norm = NormKind::rms;
  m.activation = Activation::swiglu;
  m.position = Position::rope;
  m.bias = false;
  m.tied_embeddings = false;
  return config;
}

inline void use_grid(Config& config, const Grid& grid, index_t replicas = 1) {
  config.mesh.replicas = replicas;
  config.mesh.cuboid_auto = false;
  config.mesh.cuboid = {grid.p, grid.q, grid.r};
  config.mesh.tokens = grid.tokens;
  config.mesh.outputs = grid.outputs;
  config.mesh.contractions = grid.contractions;
}

/// The plan of an input as it stands; `ranks` = 0: those of its cuboids.
inline Plan plan_of(Config config, int ranks = 0) {
  fill_computed_defaults(config, "test.toml");
  index_t needed =
      config.mesh.replicas * config.mesh.cuboid[0] * config.mesh.cuboid[1] * config.mesh.cuboid[2];
  if (!config.mesh.cuboids.empty()) {
    needed = 0;
    for (std::size_t at = 0; at < config.mesh.cuboids.size(); at += 3)
      needed += index_t{config.mesh.cuboids[at]} * config.mesh.cuboids[at + 1] *
                config.mesh.cuboids[at + 2];
  }
  return make_plan(config, {ranks > 0 ? ranks : static_cast<int>(needed)});
}

inline Plan plan_of(Config config, const Grid& grid, index_t replicas = 1, int ranks = 0) {
  use_grid(config, grid, replicas);
  return plan_of(std::move(config), ranks);
}

/// One cuboid per replica.
inline Plan plan_of_cuboids(Config config, const std::vector<int>& cuboids, int ranks = 0) {
  config.mesh.replicas = std::ssize(cuboids) / 3;
  config.mesh.cuboids = cuboids;
  return plan_of(std::move(config), ranks);
}

/// A dimension of a replica cut at other places.
inline void recut(Partition& cut, std::vector<index_t> offsets) {
  cut = Partition::from_offsets(cut.name(), std::move(offsets), 1);
}

inline std::shared_ptr<BatchSource> small_corpus(const Config& config) {
  std::vector<std::int32_t> ids;
  for (index_t at = 0; at < 3000; ++at)  // words of a small language: learnable, not constant
    ids.push_back(static_cast<std::int32_t>(
        (random_bits({5, 0}, at / 5) + static_cast<std::uint32_t>(at % 5)) % 61));
  return std::make_shared<BatchSource>(make_memory_source(ids, 61), config.model.context,
                                       static_cast<std::uint64_t>(config.run.seed), true);
}

/// Calls body(world, machine, trainer) on every rank of a training that begins with `plan`.
inline void with_trainer(const Plan& plan, const Config& config,
                         const std::function<void(Communicator&, Machine&, Trainer&)>& body) {
  run_local_ranks(plan.ranks, [&](Communicator& world) {
    Machine machine(world, machine_options(config));
    Trainer trainer(machine, plan, train_options(config), small_corpus(config));
    body(world, machine, trainer);
  });
}

/// Sentences from all ranks: test assertions belong to one thread.
class Remarks {
 public:
  void add(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (all_.size() < 2000) all_ += text + "\n";
  }
  [[nodiscard]] const std::string& all() const { return all_; }

 private:
  std::mutex mutex_;
  std::string all_;
};

}  // namespace t3d::test
