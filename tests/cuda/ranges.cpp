// What a profiler sees of a GPU rank (NVTX): steps, phases and collectives as ranges that nest.
#include "device/ranges.hpp"

#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <cstdlib>

#include "support/catch.hpp"
#include "support/plan_rig.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

/// Ranges of rank 0 in one step of two GPU ranks, and how many are open then; -1: nobody looks.
struct Seen {
  std::vector<emulation::NvtxRange> ranges;
  int open = -1;

  explicit Seen(TransportRule transport) {
    setenv("T3D_EMULATED_GPUS", "2", 1);
    Config config = tiny_gpt();
    config.mesh.device = DeviceRule::cuda;
    config.mesh.transport = transport;
    const Plan plan = plan_of(config, Grid{1, 2, 1, {}, {}, {}});
    run_local_ranks(2, [&](Communicator& world) {
      Machine machine(world, test_machine(config));
      Trainer trainer(machine, plan, test_options(config, 2), corpus(config));
      (void)emulation::take_nvtx_ranges();
      (void)trainer.step(kNoFlag);
      if (world.rank() != 0) return;
      ranges = emulation::take_nvtx_ranges();
      if (machine.device().ranges() != nullptr) open = emulation::open_nvtx_ranges();
    });
  }
};

}  // namespace

TEST_CASE("a profiler sees steps, phases and collectives") {
  for (const TransportRule transport : {TransportRule::nccl, TransportRule::staged}) {
    setenv("T3D_EMULATED_NVTX", "1", 1);
    const Seen seen(transport);
    unsetenv("T3D_EMULATED_NVTX");
    CHECK(seen.open == 0);
    REQUIRE(seen.ranges.size() > 20);
    CHECK(seen.ranges.front().name == "step 1");
    const auto count = [&](const std::string& name, int depth) {
      return std::count_if(seen.ranges.begin(), seen.ranges.end(), [&](const auto& range) {
        return range.name == name && range.depth == depth;
      });
    };
    CHECK(count("step 1", 0) == 1);
    CHECK(count("matmul", 1) > 0);
    CHECK(count("optimizer", 1) > 0);
    CHECK(count("reduce_scatter j", 2) > 0);
    for (const auto& range : seen.ranges) {
      CHECK(range.domain == "transformer3d");
      CHECK(range.depth >= (range.name == "step 1" ? 0 : 1));
    }
  }
}

TEST_CASE("where no profiler looks there is nothing to tell") {
  const Seen seen(TransportRule::nccl);
  CHECK(seen.open == -1);
  CHECK(seen.ranges.empty());
}
