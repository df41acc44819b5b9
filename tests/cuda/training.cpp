// Whole trainings with ranks as threads: on GPUs of their own through NCCL, recorded as graphs, and
// sharing one through host memory. Losses as on CPUs, bytes as predicted.
#include "support/training.hpp"

#include <cmath>
#include <cstdlib>

#include "ops/registry.hpp"
#include "support/catch.hpp"
#include "support/emulated_gpus.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

Config small(bool llama) {
  Config config = llama ? tiny_llama() : tiny_gpt();
  config.batch.sequences = 4;
  config.batch.micro = 2;
  config.model.dropout = 0.1;
  return config;
}

Run train_on_gpus(Config config, const Grid& grid, index_t replicas, const Run& one) {
  config.mesh.device = DeviceRule::cuda;
  const Run run = train(config, grid, replicas, static_cast<index_t>(one.losses.size()));
  INFO(replicas << " x " << grid.text() << ' ' << word_of(run.transport) << "; " << run.bytes);
  CHECK(run.bytes_agree);
  for (std::size_t step = 0; step < one.losses.size(); ++step)
    CHECK(std::abs(run.losses[step] - one.losses[step]) <= 1e-4 * one.losses[step]);
  return run;
}

}  // namespace

TEST_CASE("trainings on GPUs of their own, through NCCL and graphs") {
  show_gpus(8);
  for (const bool llama : {false, true}) {
    const Config config = small(llama);
    const Run one = train(config, {}, 1, 6);
    for (const Grid& grid :
         {Grid{2, 1, 1, {}, {}, {}}, Grid{1, 2, 1, {}, {}, {}}, Grid{1, 1, 2, {}, {}, {}},
          Grid{2, 2, 2, {}, {}, {}}, Grid{1, 3, 2, {}, {1, 2, 1}, {2, 1}}}) {
      const Run run = train_on_gpus(config, grid, 1, one);
      if (visible_gpus().size() >= static_cast<std::size_t>(grid.ranks()))
        CHECK(run.transport == TransportKind::nccl);
    }
    train_on_gpus(config, {1, 2, 1, {}, {}, {}}, 2, one);
  }
}

TEST_CASE("the same training on a shared GPU, and without graphs, to the bit") {
  Config config = small(false);
  config.mesh.device = DeviceRule::cuda;
  const Grid grid{2, 2, 1, {3, 1}, {}, {}};
  show_gpus(4);
  const Run apart = train(config, grid, 1, 4);
  config.debug.graphs = false;
  const Run launches = train(config, grid, 1, 4);
  show_gpus(1);
  const Run shared = train(config, grid, 1, 4);
  CHECK(shared.transport == TransportKind::staged);
  CHECK(apart.losses == launches.losses);
  CHECK(apart.losses == shared.losses);
}

TEST_CASE("gathering weights again for every use changes nothing") {
  show_gpus(4);
  Config config = small(false);
  const Run one = train(config, {}, 1, 4);
  config.mesh.keep = KeepRule::none;
  config.batch.recompute = Recompute::block;
  train_on_gpus(config, {2, 2, 1, {}, {}, {}}, 1, one);
}
