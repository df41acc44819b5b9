// Collectives of a level, measured: every member of a group goes through the same sizes.
#include "forecast/calibrate/measure_collectives.hpp"

#include "support/catch.hpp"
#include "support/plan_rig.hpp"

using namespace t3d;
using namespace t3d::test;

TEST_CASE("ranks on nodes with unequal memory measure the same sizes") {
  constexpr int kRanks = 2;
  std::array<VerbSamples, kRanks> found;
  const Config config = gpt_input();
  run_local_ranks(kRanks, [&](Communicator& world) {
    Machine machine(world, test_machine(config));
    const ProbeMachine means{machine.device(), machine.ops(), machine.queue(), {}};
    CollectiveBudget budget;
    budget.seconds = 60;
    budget.bytes = world.rank() == 0 ? 1 << 16 : 1 << 12;
    GroupCollectives collectives(means, kRanks, budget);
    const auto group = machine.device_world().subgroup({0, 1}, "calibrate");
    found[static_cast<std::size_t>(world.rank())] = collectives.measure(*group, 1);
  });
  for (std::size_t verb = 0; verb < kLevelVerbs.size(); ++verb) {
    // 1 KiB and 2 KiB of each member in 4 KiB.
    REQUIRE(found[0][verb].size() == 2);
    REQUIRE(found[1][verb].size() == 2);
    for (std::size_t at = 0; at < 2; ++at) {
      CHECK(found[0][verb][at].shape == found[1][verb][at].shape);
      CHECK(found[0][verb][at].seconds == found[1][verb][at].seconds);
    }
  }
}
