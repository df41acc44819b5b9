// Plans made from small inputs, and trainings that run from plans, ranks as threads of the test.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "support/plan.hpp"
#include "support/remarks.hpp"
#include "support/training.hpp"

namespace t3d::test {

/// Smaller than tiny_gpt() and on the fast operators: for tests of many shapes.
inline Config gpt_input() {
  Config config = tiny_gpt();
  config.model.ffn = 48;
  config.model.context = 8;
  config.run.steps = 1000;
  config.batch.sequences = 5;
  config.precision.backend = BackendRule::cpu;
  return config;
}

inline Config llama_input() {
  Config config = gpt_input();
  config.model = tiny_llama().model;
  config.model.ffn = 40;
  config.model.context = 8;
  return config;
}

inline Config qwen_input() {
  Config config = llama_input();
  config.model.head_columns = 12;
  config.model.qk_norm = true;
  config.model.attention_bias = AttentionBias::qkv;
  return config;
}

inline Config lora_input() {
  Config config = qwen_input();
  config.model.lora = {.rank = 3, .targets = {"q", "v", "o", "gate", "down"}};
  return config;
}

/// `ranks` = 0: as many as the mesh needs; of more, some are idle.
inline Plan plan_of(Config config, const Grid& grid, index_t replicas = 1, int ranks = 0) {
  set_grid(config, grid, replicas);
  return plan_of(config, ranks > 0 ? ranks : ranks_of(config.mesh));
}

inline Plan plan_of_cuboids(Config config, const std::vector<Cuboid>& cuboids, int ranks = 0) {
  set_cuboids(config, cuboids);
  return plan_of(config, ranks > 0 ? ranks : ranks_of(config.mesh));
}

/// A dimension of a replica cut at other places.
inline void recut(Partition& cut, std::vector<index_t> offsets) {
  cut = Partition::from_offsets(cut.name(), std::move(offsets), 1);
}

using MakeSource = std::function<std::shared_ptr<BatchSource>(const Config&)>;

/// Calls body(world, machine, trainer) on every rank of a training that begins with `plan`.
inline void with_trainer(const Plan& plan, const Config& config,
                         const std::function<void(Communicator&, Machine&, Trainer&)>& body,
                         const MakeSource& source = corpus) {
  run_local_ranks(plan.ranks, [&](Communicator& world) {
    Machine machine(world, test_machine(config));
    Trainer trainer(machine, plan, train_options(config, plan.ranks), source(config));
    body(world, machine, trainer);
  });
}

}  // namespace t3d::test
