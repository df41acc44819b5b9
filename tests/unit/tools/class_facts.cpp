// Classes of the ranks that calibrate: what they are called.
#include "tools/calibrate/class_facts.hpp"

#include "support/catch.hpp"
#include "support/plan_rig.hpp"

using namespace t3d;
using namespace t3d::test;

TEST_CASE("two kinds of ranks on one kind of processor have its whole name, and a number") {
  constexpr int kRanks = 3;
  std::array<JobClasses, kRanks> found;
  const Config config = gpt_input();
  run_local_ranks(kRanks, [&](Communicator& world) {
    MachineOptions options = test_machine(config);
    options.threads = 1 + world.rank();
    Machine machine(world, options);
    found[static_cast<std::size_t>(world.rank())] = find_classes(machine, {}, "", {});
  });
  for (const JobClasses& job : found) {
    REQUIRE(job.classes.size() == 3);
    CHECK(job.classes == found[0].classes);
    CHECK(job.class_of_ranks == std::vector<int>{0, 1, 2});
    const std::string& name = job.classes[0].name;
    CHECK(job.classes[1].name == name + "-2");
    CHECK(job.classes[2].name == name + "-3");
  }
}
