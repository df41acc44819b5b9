// Twenty training steps are the same on every mesh: fp32 losses agree to 1e-4 relative, counted
// bytes equal predicted ones, and two runs on one mesh agree bitwise.
#include <cmath>

#include "support/catch.hpp"
#include "support/training.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

void check(const Config& config, const Grid& grid, index_t replicas, const Run& one) {
  const Run run = train(config, grid, replicas);
  INFO(replicas << " x " << grid.text() << " keep " << config.mesh.keep << " recompute "
                << config.batch.recompute << "; " << run.bytes);
  CHECK(run.bytes_agree);
  for (std::size_t step = 0; step < one.losses.size(); ++step)
    CHECK(std::abs(run.losses[step] - one.losses[step]) <= 1e-4 * one.losses[step]);
}

}  // namespace

namespace {

/// `learned`: what the last loss is at most of the first.
void check_all_meshes(Config config, double learned = 0.97) {
  config.batch.sequences = 7;
  config.batch.micro = 3;
  config.model.dropout = 0.1;
  config.precision.backend = BackendRule::cpu;
  const Run one = train(config, {}, 1);
  CHECK(one.losses.back() < learned * one.losses.front());
  for (const Grid& grid : all_grids()) check(config, grid, 1, one);
  check(config, {2, 2, 1, {}, {}, {}}, 2, one);
  check(config, {1, 2, 1, {}, {}, {}}, 3, one);
}

}  // namespace

TEST_CASE("GPT trains the same on every mesh", "[mesh]") { check_all_meshes(tiny_gpt()); }

TEST_CASE("Qwen 3 trains the same on every mesh", "[mesh]") { check_all_meshes(tiny_qwen3()); }

TEST_CASE("adapters train the same on every mesh", "[mesh]") {
  check_all_meshes(tiny_lora(), 0.995);
}

TEST_CASE("a model with frozen parameters trains the same on every mesh", "[mesh]") {
  check_all_meshes(tiny_frozen());
}

TEST_CASE("Llama trains the same on every mesh", "[mesh]") { check_all_meshes(tiny_llama()); }

TEST_CASE("memory policies do not change the training", "[mesh]") {
  Config config = tiny_gpt();
  config.batch.sequences = 6;
  config.batch.micro = 2;
  config.precision.backend = BackendRule::cpu;
  const Run one = train(config, {}, 1);
  for (const KeepRule keep : {KeepRule::all, KeepRule::none})
    for (const Recompute recompute : {Recompute::none, Recompute::block}) {
      Config other = config;
      other.mesh.keep = keep;
      other.batch.recompute = recompute;
      check(other, {2, 2, 2, {}, {}, {}}, 1, one);
    }
}

TEST_CASE("the same mesh twice gives the same bits", "[mesh]") {
  Config config = tiny_gpt();
  config.precision.backend = BackendRule::cpu;
  for (const ComputeType compute : {ComputeType::fp32, ComputeType::bf16}) {
    config.precision.compute = compute;
    const Grid grid{2, 2, 2, {3, 1}, {}, {}};
    const Run a = train(config, grid, 1, 5);
    const Run b = train(config, grid, 1, 5);
    CHECK(a.losses == b.losses);
  }
}
