// Persistent against transient changes of a rank's time (hetero/balance/regime.hpp), and when a
// costly change of plan pays (ski_rental.hpp).
#include "hetero/balance/regime.hpp"

#include "core/random.hpp"
#include "hetero/balance/ski_rental.hpp"
#include "support/catch.hpp"

using namespace t3d;

namespace {

/// A step of 1 s with 2 % noise and spikes in 0.5 % of the steps.
double noisy(std::uint64_t seed, index_t step) {
  const bool spike = random_uniform({seed, 2}, step) < 0.005F;
  return (1 + 0.02 * random_normal({seed, 1}, step)) * (spike ? 2 : 1);
}

struct Clocked {
  RegimeTracker tracker;
  double now = 0;
  index_t step = 0;
  /// `steps` noisy steps, times `factor`.
  Regime run(index_t steps, double factor) {
    Regime regime = tracker.regime();
    for (index_t end = step + steps; step < end; ++step) {
      now += factor;
      regime = tracker.observe(factor * noisy(7, step), now);
    }
    return regime;
  }
};

}  // namespace

TEST_CASE("noise and spikes are no change of regime") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    RegimeTracker tracker;
    index_t persistent = 0;
    for (index_t step = 0; step < 2000; ++step)
      persistent += tracker.observe(noisy(seed, step), double(step)) >= Regime::persistent ? 1 : 0;
    INFO("seed " << seed);
    CHECK(persistent == 0);
    CHECK(tracker.level() == Approx(1).epsilon(0.01));
    CHECK(tracker.error() == Approx(0.02 * 1.2533 / std::sqrt(55)).epsilon(0.5));
  }
}

TEST_CASE("a slow-down is suspect after three steps and persistent after five") {
  Clocked rank;
  CHECK(rank.run(100, 1) == Regime::steady);
  CHECK(rank.run(2, 2) == Regime::steady);
  CHECK(rank.tracker.level() == Approx(1).epsilon(0.02));
  CHECK(rank.run(1, 2) == Regime::suspect);
  CHECK(rank.tracker.side() == 1);
  CHECK(rank.tracker.level() == Approx(2).epsilon(0.05));
  CHECK(rank.run(1, 2) == Regime::suspect);
  CHECK(rank.run(1, 2) == Regime::persistent);
  CHECK(rank.tracker.samples() == 5);
  CHECK(rank.tracker.slower_by() == Approx(1).epsilon(0.05));
  // Its own noise judges the new regime, and the old one is forgotten.
  CHECK(rank.run(60, 2) == Regime::fail_slow);
  CHECK(rank.tracker.level() == Approx(2).epsilon(0.01));
}

TEST_CASE("bursts of up to four steps change nothing") {
  for (const index_t length : {1, 2, 3, 4}) {
    Clocked rank;
    rank.run(100, 1);
    for (int burst = 0; burst < 5; ++burst) {
      CHECK(rank.run(length, 3) <= Regime::suspect);
      for (int step = 0; step < 12; ++step) {
        CHECK(rank.run(1, 1) == Regime::steady);
        CHECK(rank.tracker.level() == Approx(1).epsilon(0.03));
      }
    }
  }
}

TEST_CASE("a rank recovers, and only long and large slow-downs are fail-slow") {
  Clocked rank;
  rank.run(100, 1);
  CHECK(rank.run(300, 1.1) == Regime::persistent);
  CHECK(rank.run(20, 1) == Regime::steady);
  CHECK(rank.tracker.slower_by() == 0);
  CHECK(rank.run(50, 1) == Regime::steady);
  CHECK(rank.run(40, 1.5) == Regime::persistent);
  CHECK(rank.run(20, 1.5) == Regime::fail_slow);
  // Faster, but not as before.
  CHECK(rank.run(60, 1.3) == Regime::fail_slow);
  CHECK(rank.tracker.slower_by() == Approx(0.3).epsilon(0.1));
  CHECK(rank.run(20, 1) == Regime::steady);
  // Faster than ever: the new normal.
  CHECK(rank.run(60, 0.5) == Regime::steady);
  CHECK(rank.tracker.level() == Approx(0.5).epsilon(0.02));
}

TEST_CASE("a time of 0 may grow") {
  RegimeTracker tracker;
  for (int step = 0; step < 60; ++step) tracker.observe(0, step);
  CHECK(tracker.level() == 0);
  for (int step = 60; step < 65; ++step) tracker.observe(0.35, step);
  CHECK(tracker.regime() == Regime::persistent);
  CHECK(tracker.level() == 0.35);
}

TEST_CASE("many suspects together are one event") {
  CHECK_FALSE(correlated(std::vector<int>{0, 1}));
  CHECK_FALSE(correlated(std::vector<int>{1, 1}));
  CHECK_FALSE(correlated(std::vector<int>{0, 0, 1, 1}));
  CHECK(correlated(std::vector<int>{0, 1, 1, 1}));
  CHECK(correlated(std::vector<int>{1, 0, -1, 0, 0, 0, 0, 1}));
  CHECK_FALSE(correlated(std::vector<int>{1, 0, -1, 0, 0, 0, 0, 1, 0, 0, 0, 0}));
}

TEST_CASE("the rental rule costs at most twice what one who knows the future pays") {
  const double price = 10;
  for (const double rent : {0.125, 0.375, 1.0, 7.0, 30.0})
    for (index_t season = 1; season <= 400; ++season) {
      SkiRental rental;
      double paid = 0;
      bool bought = false;
      for (index_t step = 0; step < season && !bought; ++step) {
        paid += rent;
        bought = rental.observe(5 + rent, 5, price);
      }
      if (bought) paid += price;
      const double best = std::min(price, rent * double(season));
      INFO("rent " << rent << ", " << season << " steps");
      // A step cannot be left in its middle: one rent more.
      CHECK(paid <= 2 * best + rent);
      CHECK(bought == (rent * double(season) >= price));
    }
}

TEST_CASE("noise around the best time is no regret") {
  SkiRental rental;
  for (index_t step = 0; step < 2000; ++step)
    CHECK_FALSE(rental.observe(1 + 0.02 * random_normal({3, 1}, step), 1, 5));
  CHECK_FALSE(rental.observe(std::numeric_limits<double>::infinity(), 1, 5));
  CHECK(rental.observe(9, 1, 5));
  rental.restart();
  CHECK(rental.regret_seconds() == 0);
  CHECK_FALSE(rental.observe(1, 1, 0));
}
