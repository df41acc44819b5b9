// Checkpoints between processes: file groups of every size, another layout and fewer ranks to load,
// and one fault that every rank learns of.
#include "io/checkpoint/checkpoint.hpp"

#include <unistd.h>

#include <filesystem>
#include <numeric>

#include "core/error.hpp"
#include "support/catch.hpp"
#include "support/checkpoint_data.hpp"
#include "support/mpi_world.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

/// One folder for all ranks: they are processes of one host, children of one mpirun.
std::string shared_folder(Communicator& world, const std::string& name) {
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("t3d_mpi_" + name + "_" + std::to_string(::getppid())))
                               .string();
  world.barrier();
  if (world.rank() == 0) std::filesystem::remove_all(path);
  world.barrier();
  return path;
}

index_t sum(Communicator& world, index_t value) {
  auto number = static_cast<double>(value);
  world.all_reduce({&number, DType::f64, 1, 1}, ReduceOp::sum).wait_host();
  return static_cast<index_t>(number);
}

}  // namespace

TEST_CASE("round trips between processes") {
  Communicator& world = test::world();
  const auto tensors = small_tensors();
  const std::string dir = shared_folder(world, "round_trip");
  for (unsigned layout = 0; layout < 10; ++layout) {
    const index_t step = 1 + layout;
    RankState state = make_state(tensors, layout, world.size(), world.rank());
    fill(tensors, state, step);
    save_checkpoint(world, {dir, layout % 4, 2, 0, true}, {step, "mpi", {{"mesh", "x"}}},
                    state.parts, true);
    RankState other = make_state(tensors, 50 + layout, world.size(), world.rank());
    const auto info = load_newest(world, dir, always(other.parts), {});
    REQUIRE(info.has_value());
    CHECK(info->state.step == step);
    CHECK(sum(world, wrong_elements(tensors, other, step)) == 0);
  }
  // A smaller job continues.
  std::vector<int> half(static_cast<std::size_t>(world.size() / 2));
  std::iota(half.begin(), half.end(), world.rank() < world.size() / 2 ? 0 : world.size() / 2);
  const auto small = world.subgroup(half, "small");
  RankState state = make_state(tensors, 77, small->size(), small->rank());
  REQUIRE(load_newest(*small, dir, always(state.parts), {}).has_value());
  CHECK(sum(world, wrong_elements(tensors, state, 10)) == 0);
  shared_folder(world, "round_trip");
}

TEST_CASE("a fault on one rank is an error on all, and the old checkpoint stays") {
  Communicator& world = test::world();
  const auto tensors = small_tensors();
  const std::string dir = shared_folder(world, "fault");
  RankState state = make_state(tensors, 1, world.size(), world.rank());
  fill(tensors, state, 1);
  save_checkpoint(world, {dir, 1, 2, 0, true}, {1, "mpi", {}}, state.parts, true);
  auto bad = state.parts;
  if (world.rank() == world.size() - 1) bad[0].rows += 1;
  CHECK_THROWS_WITH(save_checkpoint(world, {dir, 1, 2, 0, true}, {2, "mpi", {}}, bad, true),
                    t3d::test::contains(tensors[0].name));
  RankState again = make_state(tensors, 2, world.size(), world.rank());
  const auto info = load_newest(world, dir, always(again.parts), {});
  REQUIRE(info.has_value());
  CHECK(info->state.step == 1);
  shared_folder(world, "fault");
}
