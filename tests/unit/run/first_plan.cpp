// The first plan within the memory of the ranks: what is free now, and what could be.
#include "run/first_plan.hpp"

#include "config/config_load.hpp"
#include "core/error.hpp"
#include "hetero/planner/memory_fit.hpp"
#include "support/catch.hpp"
#include "support/planner_case.hpp"

namespace t3d::test {
namespace {

const std::string kInput = R"(version = 1
[run]
steps = 1
[model]
layers = 4
hidden = 256
heads = 4
vocab = 512
context = 32
[mesh]
cuboid = [2, 1, 1]
[data]
train = "x"
[batch]
sequences = 8
)";

Config two_slabs() {
  Config config = parse_config(kInput, "in.toml");
  check_against_ranks(config, 2);
  return config;
}

struct Case {
  Config config = two_slabs();
  PlanFacts facts{2, TransportKind::host, false};
  Plan even = make_plan(config, facts);
  index_t needed = needed_bytes(memory_cost(even, Coord{}), false);

  [[nodiscard]] FirstPlan planned(const MemoryRooms& rooms) const {
    return planned_within(rooms, config, facts, even, speeds_of({1, 1}));
  }
};

}  // namespace

TEST_CASE("equal ranks with little memory store apart, whatever the speeds say") {
  const Case c;
  CHECK(c.planned({{c.needed, c.needed}, {c.needed, c.needed}}).plan == c.even);
  CHECK(c.planned({{0, 0}, {0, 0}}).plan == c.even);  // nobody knows
  const index_t small = c.needed * 9 / 10;
  const FirstPlan moved = c.planned({{4 * c.needed, small}, {4 * c.needed, small}});
  const Partition& storage = moved.plan.replicas[0].storage;
  CHECK(storage.size(1) < storage.size(0));
  CHECK(moved.speeds->ranks[1].free_bytes == small);
}

TEST_CASE("memory that others use shapes the plan, and refuses none") {
  const Case c;
  const index_t small = c.needed / 4, much = 8 * c.needed;
  const FirstPlan best = c.planned({{3 * small, small}, {much, much}});
  const Partition& storage = best.plan.replicas[0].storage;
  CHECK(storage.size(1) < storage.size(0));
  CHECK(best.speeds->ranks[0].free_bytes == 3 * small);
  CHECK_NOTHROW(c.planned({{3 * small, small}, {0, 0}}));
  try {
    (void)c.planned({{small, small}, {c.needed / 2, c.needed / 2}});
    FAIL("a plan for too little memory");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::unavailable);
    CHECK_THAT(error.what(), Catch::Contains("needs") && Catch::Contains("and has"));
  }
}

namespace {

Plan planned_for_input(const std::vector<std::string>& overrides, int ranks,
                       const std::vector<double>& speeds) {
  std::vector<std::string> all{"batch.sequences=16"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  Config config = parse_config(kInput, "in.toml", all);
  check_against_ranks(config, ranks);
  const PlanFacts facts{ranks, TransportKind::host, false};
  return planned_for(config, facts, make_plan(config, facts), speeds_of(speeds)).plan;
}

}  // namespace

TEST_CASE("what the user wrote of the mesh stays, and the rest follows the speeds") {
  const Plan placed =
      planned_for_input({"mesh.cuboid=[3,1,1]", "mesh.place=[1,2,0]"}, 3, {1, 0.25, 1});
  CHECK(placed.place == std::vector<int>{1, 2, 0});
  const std::vector<index_t> dealt = slab_sequences(placed);
  CHECK(dealt[0] < 4);
  CHECK(dealt[1] > 6);
  CHECK(planned_for_input({"mesh.cuboid=auto", "mesh.place=[1,0]"}, 2, {1, 0.25}).place ==
        std::vector<int>{1, 0});

  const Plan cut =
      planned_for_input({"mesh.cuboid=[2,2,1]", "mesh.outputs=[3,1]"}, 4, {0.5, 0.5, 1, 1});
  CHECK(cut.replicas[0].groups.size(0) == 3);
  CHECK(cut.replicas[0].ffn.size(0) == 3 * cut.replicas[0].ffn.size(1));
  // A fast rank for the wide part of each slab: both slabs are equally fast.
  CHECK(cut.place == std::vector<int>{2, 0, 3, 1});
  CHECK(slab_sequences(cut)[0] == slab_sequences(cut)[1]);
}

}  // namespace t3d::test
