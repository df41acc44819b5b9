// What the share controller answers to what it is told (hetero/balance/share_controller.hpp).
#include "hetero/balance/share_controller.hpp"

#include <functional>
#include <numeric>

#include "core/error.hpp"
#include "core/random.hpp"
#include "hetero/balance/deal.hpp"
#include "support/catch.hpp"

using namespace t3d;
using t3d::test::contains;

namespace {

/// Replicas whose times a function gives; the controller's answers take effect.
struct Loop {
  Loop(const ShareLimits& limits, std::size_t replicas)
      : shares(deal_evenly(replicas, limits)), controller(make_model_controller({}, limits)) {}
  /// Steps until and with the first change, at most `steps`; 0 if there is none.
  index_t run(index_t steps, const std::function<ReplicaTimes(std::size_t, index_t)>& time) {
    index_t first = 0;
    for (index_t n = 1; n <= steps; ++n, ++step) {
      std::vector<ReplicaTimes> times;
      for (std::size_t replica = 0; replica < shares.size(); ++replica)
        times.push_back(time(replica, shares[replica]));
      const auto changed = controller->observe(times, shares);
      if (!changed) continue;
      reasons.push_back(controller->reason());
      shares = *changed;
      if (first == 0) first = n;
    }
    return first;
  }
  Shares shares;
  std::unique_ptr<ShareController> controller;
  std::vector<std::string> reasons;
  index_t step = 0;
};

/// seconds = fixed + units / speed.
std::function<ReplicaTimes(std::size_t, index_t)> machines(std::vector<double> speeds,
                                                           double fixed = 0) {
  return [speeds, fixed](std::size_t n, index_t units) {
    return ReplicaTimes{fixed + double(units) / speeds[n], fixed, speeds[n]};
  };
}

}  // namespace

TEST_CASE("the sum and the limits are kept") {
  for (index_t seed = 0; seed < 20; ++seed) {
    const auto draw = [&](index_t at) { return double(random_uniform({1, 2}, 64 * seed + at)); };
    const auto replicas = std::size_t(2 + 10 * draw(0));
    ShareLimits limits;
    limits.least = index_t(3 * draw(1));
    for (std::size_t n = 0; n < replicas; ++n)
      limits.most.push_back(limits.least + 4 + index_t(20 * draw(2 + index_t(n))));
    const index_t room = std::accumulate(limits.most.begin(), limits.most.end(), index_t{0}) -
                         limits.least * index_t(replicas);
    limits.total = limits.least * index_t(replicas) + index_t(draw(20) * double(room));
    Loop loop(limits, replicas);
    for (index_t step = 0; step < 200; ++step) {
      loop.run(1, [&](std::size_t n, index_t units) {
        const double speed = 1 + 9 * draw(30 + index_t(n) + 20 * (step / 50));
        return ReplicaTimes{0.1 + double(units) / speed, 0.1, speed};
      });
      INFO("seed " << seed << ", step " << step);
      index_t sum = 0;
      for (std::size_t n = 0; n < replicas; ++n) {
        sum += loop.shares[n];
        CHECK(loop.shares[n] >= limits.least);
        CHECK(loop.shares[n] <= limits.most[n]);
      }
      CHECK(sum == limits.total);
    }
  }
}

TEST_CASE("limits without a solution are an error") {
  CHECK_THROWS_AS(deal_evenly(3, {8, 3, {}}), Error);
  CHECK_THROWS_AS(deal_evenly(3, {8, 0, {2, 2, 2}}), Error);
  CHECK_THROWS_AS(deal_evenly(2, {8, 2, {1, 9}}), Error);
  CHECK(deal_evenly(3, {8, 0, {}}) == Shares{3, 3, 2});
  CHECK(deal_evenly(3, {8, 1, {1, 9, 9}}) == Shares{1, 4, 3});
}

TEST_CASE("half of the way keeps the sum and always goes somewhere") {
  CHECK(halfway(Shares{4, 4}, Shares{2, 6}) == Shares{3, 5});
  CHECK(halfway(Shares{4, 4}, Shares{3, 5}) == Shares{3, 5});
  CHECK(halfway(Shares{4, 4, 4}, Shares{1, 5, 6}) == Shares{2, 5, 5});
  CHECK(halfway(Shares{5, 5, 5, 5}, Shares{4, 4, 6, 6}) == Shares{4, 5, 6, 5});
  CHECK(halfway(Shares{9, 0, 0, 0}, Shares{0, 3, 3, 3}) == Shares{4, 2, 2, 1});
}

TEST_CASE("the model deals exactly after five steps, with fixed costs taken into account") {
  Loop loop({64}, 2);
  CHECK(loop.run(50, machines({3, 1}, 2)) == 5);
  CHECK(loop.shares == Shares{48, 16});
  CHECK(loop.reasons.size() == 1);
  CHECK_THAT(loop.reasons[0], contains("replica 1: 34 s"));
  CHECK_THAT(loop.reasons[0], contains("16 units move"));
  // The times of the old shares still count: a third replica's seconds per unit have not changed.
  CHECK(loop.run(200, machines({3, 1}, 2)) == 0);
  CHECK(loop.run(50, machines({1, 1}, 2)) == 5);
  CHECK(loop.shares == Shares{32, 32});
}

TEST_CASE("the model's reason says of a replica that became slow for good how much") {
  Loop loop({2}, 2);
  loop.run(60, machines({1, 1}));
  loop.run(20, machines({1, 0.5}));
  CHECK_THAT(loop.controller->reason(), contains("it is persistent: 100 % slower than it was"));
  loop.run(60, machines({1, 0.5}));
  CHECK_THAT(loop.controller->reason(), contains("it is fail-slow"));
}

// Only even numbers of units can be had.
TEST_CASE("shares that cannot be had are not asked for") {
  const auto even = [](const Shares& shares) {
    const index_t first = shares[0] / 2 * 2;
    return Shares{first, shares[0] + shares[1] - first};
  };
  const auto controller = make_model_controller({}, {64}, even);
  Shares shares{32, 32};
  for (int step = 0; step < 100; ++step) {
    std::vector<ReplicaTimes> times;
    for (std::size_t n = 0; n < 2; ++n) times.push_back(machines({3.1, 1})(n, shares[n]));
    if (const auto next = controller->observe(times, shares)) shares = *next;
    INFO("step " << step);
    CHECK(shares[0] % 2 == 0);
  }
  CHECK(shares[0] >= 44);
}

TEST_CASE("replicas without units keep no other from its share") {
  const auto controller = make_model_controller({}, {64});
  Shares shares{32, 32, 0};
  for (int step = 0; step < 20; ++step) {
    std::vector<ReplicaTimes> times{machines({3})(0, shares[0])};
    times.push_back({double(shares[1]), 0, 1});
    times.push_back({0.1, 0.1, 0});
    if (const auto next = controller->observe(times, shares)) shares = *next;
  }
  CHECK(shares == Shares{48, 16, 0});
}

TEST_CASE("replicas within the tolerance of each other keep the even shares") {
  Loop near({1000}, 4);
  CHECK(near.run(300, machines({1, 1.04, 1.02, 1.03})) == 0);
  Loop far({1000}, 4);
  CHECK(far.run(300, machines({1, 1.12, 1.1, 1.1})) == 5);
  // Few units: nothing to gain.
  Loop few({8}, 4);
  CHECK(few.run(300, machines({1, 1.2, 1.1, 1.1})) == 0);
}

TEST_CASE("a spike, a burst and an event of all replicas change nothing") {
  Loop loop({64}, 4);
  loop.run(60, machines({1, 1, 1, 1}));
  CHECK(loop.run(1, machines({1, 0.1, 1, 1})) == 0);
  CHECK(loop.run(20, machines({1, 1, 1, 1})) == 0);
  CHECK(loop.run(4, machines({1, 0.3, 1, 1})) == 0);
  CHECK(loop.run(20, machines({1, 1, 1, 1})) == 0);
  CHECK(loop.run(4, machines({0.2, 0.3, 0.2, 1})) == 0);
  CHECK_THAT(loop.controller->reason(), contains("many replicas"));
  CHECK(loop.run(60, machines({0.5, 0.5, 0.5, 0.5})) == 0);
}

TEST_CASE("a change that measured worse is taken back, and is not tried again soon") {
  // Beyond 36 units replica 0 pages: what no model of units per second can foresee.
  const auto paging = [](std::size_t n, index_t units) {
    const double seconds = n == 0 ? (units > 36 ? 3.0 : 1.0) * double(units) : 2 * double(units);
    return ReplicaTimes{seconds, 0, 0};
  };
  Loop loop({64}, 2);
  CHECK(loop.run(9, paging) == 5);
  CHECK(loop.shares == Shares{43, 21});
  CHECK(loop.run(1, paging) == 1);
  CHECK(loop.shares == Shares{32, 32});
  CHECK_THAT(loop.reasons.back(), contains("roll-back"));
  CHECK(loop.run(20, paging) == 0);
  double seconds = 0;
  loop.run(400, [&](std::size_t n, index_t units) {
    if (n == 0) seconds += std::max(paging(0, units).compute_seconds, 2.0 * double(64 - units));
    return paging(n, units);
  });
  // Close to even shares for ever, though the model keeps promising more.
  CHECK(seconds < 1.1 * 400 * 64);
}

TEST_CASE("a change that reverses the last one is halved") {
  Loop loop({64}, 2);
  loop.run(10, machines({3, 1}));
  CHECK(loop.shares == Shares{48, 16});
  CHECK(loop.run(6, machines({1, 1})) > 0);
  CHECK(loop.shares == Shares{40, 24});
  CHECK_THAT(loop.reasons.back(), contains("reverses"));
  loop.run(20, machines({1, 1}));
  CHECK(loop.shares == Shares{32, 32});
  // Long after, it is news and no oscillation.
  loop.run(100, machines({1, 1}));
  loop.run(5, machines({3, 1}));
  CHECK(loop.shares == Shares{48, 16});
}

TEST_CASE("under other limits what was learned stays, and a proposal may be dropped") {
  const BalanceOptions options;
  Loop loop({64}, 2);
  REQUIRE(loop.run(10, machines({3, 1})) == 5);
  loop.shares = {32, 32};  // was not made
  SECTION("limited") {
    loop.controller->limit({64, 0, {40, 64}});
    CHECK(loop.run(10, machines({3, 1})) == options.confirm);
    CHECK(loop.shares == Shares{40, 24});
  }
  SECTION("dropped") {
    loop.controller->drop_proposal();
    CHECK(loop.run(10, machines({3, 1})) == options.confirm);
    CHECK(loop.shares == Shares{48, 16});
    // What was dropped is nothing that the next change takes back.
    CHECK_THAT(loop.reasons.back(), !contains("reverses"));
  }
}

TEST_CASE("what is not a measurement is not used") {
  Loop loop({64}, 2);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(loop.run(20, [&](std::size_t, index_t) { return ReplicaTimes{nan, nan, nan}; }) == 0);
  CHECK_THAT(loop.controller->reason(), contains("too few"));
  CHECK(loop.run(20, [&](std::size_t, index_t) { return ReplicaTimes{1, 2, 0}; }) == 0);
  CHECK(loop.run(20, machines({3, 1})) == 5);
}

TEST_CASE("a replica without units gets some when its predicted speed says so") {
  Loop loop({64, 0, {64, 0}}, 2);
  CHECK(loop.shares == Shares{64, 0});
  CHECK(loop.run(20, machines({1, 3})) == 0);  // its limit is 0
  const auto controller = make_model_controller({}, {64});
  std::vector<ReplicaTimes> times{{64, 0, 0}, {0, 0, 0}};
  for (int step = 0; step < 20; ++step) CHECK_FALSE(controller->observe(times, Shares{64, 0}));
  times[1].predicted_speed = 3;
  for (int step = 0; step < 2; ++step) CHECK_FALSE(controller->observe(times, Shares{64, 0}));
  CHECK(controller->observe(times, Shares{64, 0}) == Shares{16, 48});
}
