// Orders of ranks for places.
#include "hetero/planner/rank_order.hpp"

#include "support/catch.hpp"
#include "support/planner_case.hpp"

namespace t3d::test {
namespace {

const StepWork kWork{1000000, 1000000, 0, 1000000};
using Ranks = std::vector<int>;

}  // namespace

TEST_CASE("ranks by speed, those of about equal speed by number, those of speed 0 not at all") {
  const Speeds speeds = speeds_of({0.5, 1, 0.502, 0, 0.998, 1.003, 2});
  const RankOrder order = order_by_speed(speeds, kWork);
  CHECK(order.ranks == Ranks{6, 1, 4, 5, 0, 2});
  CHECK(order.seconds[0] < 0.51 * order.seconds[1]);
  CHECK(order_by_node(speeds, kWork).ranks == order.ranks);  // all on one node
}

TEST_CASE("nodes stay together, by their slowest rank") {
  Speeds speeds = speeds_of({1, 0.2, 0.5, 0.6, 0.9, 0.8});
  for (std::size_t rank = 0; rank < 6; ++rank)
    speeds.ranks[rank].node = std::string(1, "xby"[rank / 2]);
  CHECK(order_by_node(speeds, kWork).ranks == Ranks{4, 5, 3, 2, 0, 1});
}

TEST_CASE("replicas alike take planes in turn, the fastest to the slowest replica") {
  const Speeds speeds = speeds_of({8, 7, 6, 5, 4, 3, 2, 1});
  const RankOrder order = order_by_speed(speeds, kWork);
  CHECK(mixed_place(order, 2, 2, 2) == Ranks{0, 1, 6, 7, 2, 3, 4, 5});
  CHECK(mixed_place(order, 2, 3, 1) == Ranks{0, 3, 5, 1, 2, 4});
}

}  // namespace t3d::test
