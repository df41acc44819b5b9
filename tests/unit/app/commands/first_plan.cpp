// The first plan within the memory of the ranks: what is free now, and what could be.
#include "app/commands/first_plan.hpp"

#include "app/config/config_load.hpp"
#include "core/error.hpp"
#include "hetero/planner/memory_fit.hpp"
#include "support/catch.hpp"
#include "support/planner_case.hpp"

namespace t3d::test {
namespace {

Config two_slabs() {
  const std::string text = R"(version = 1
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
  Config config = parse_config(text, "in.toml");
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

}  // namespace t3d::test
