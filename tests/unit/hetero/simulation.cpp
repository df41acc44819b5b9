// Share controllers on a virtual clock (tests/unit/hetero/share_simulation.hpp): the figures that
// the project promises, over several seeds.
#include <numeric>

#include "support/catch.hpp"
#include "unit/hetero/share_simulation.hpp"

using namespace t3d;

namespace {

SimulationResult run(const Scenario& scenario) {
  const auto controller = make_model_controller({}, scenario.limits);
  return simulate(scenario, controller.get());
}

Scenario equal_replicas(std::size_t replicas, index_t units_each, std::uint64_t seed) {
  Scenario scenario;
  scenario.replicas.assign(replicas, {100, 0.02, 0});
  scenario.limits.total = units_each * index_t(replicas);
  scenario.steps = 500;
  scenario.noise = 0.02;
  scenario.spike_chance = 0.005;
  scenario.seed = seed;
  return scenario;
}

}  // namespace

TEST_CASE("a virtual step is what the formula says") {
  Scenario scenario;
  scenario.replicas = {{10, 0.1, 0}, {20, 0, 6}};
  scenario.limits.total = 8;
  scenario.steps = 4;
  scenario.events = {{1, 3, 0, 2, 0.25}};
  CHECK(true_time(scenario, 0, 0, 4).total == Approx(0.5));
  CHECK(true_time(scenario, 1, 0, 4).total == Approx(1.15));
  CHECK(true_time(scenario, 2, 0, 4).fixed == Approx(0.35));
  CHECK(true_time(scenario, 3, 0, 4).total == Approx(0.5));
  CHECK(true_time(scenario, 0, 1, 4).total == Approx(0.3));
  CHECK(true_time(scenario, 0, 1, 0).total == 0);
  CHECK(measured_time(scenario, 2, 0, 4).total == true_time(scenario, 2, 0, 4).total);
  const SimulationResult result = simulate(scenario, nullptr);
  CHECK(result.steps[0].shares == Shares{4, 4});
  CHECK(result.steps[0].seconds == Approx(0.5));
  CHECK(result.steps[0].optimum_seconds == Approx(0.3));  // 2 + 6
  CHECK(result.steps[2].optimum_seconds == Approx(0.4));  // 0 + 8
  CHECK(result.over_optimum() == Approx((2 * 0.5 + 2 * 1.15) / (2 * 0.3 + 2 * 0.4)));
}

TEST_CASE("a scenario is reproducible and its noise is what was asked for") {
  Scenario scenario = equal_replicas(4, 10, 3);
  const SimulationResult a = run(scenario), b = run(scenario);
  double sum = 0, squares = 0;
  index_t spikes = 0, values = 0;
  for (index_t step = 0; step < scenario.steps; ++step) {
    CHECK(a.steps[std::size_t(step)].seconds == b.steps[std::size_t(step)].seconds);
    for (std::size_t n = 0; n < 4; ++n) {
      const SimulatedTime time = measured_time(scenario, step, n, 10);
      if (time.total > 1.3 * 0.12) {
        ++spikes;
        continue;
      }
      const double noise = (time.total - time.fixed) / 0.1 - 1;
      sum += noise;
      squares += noise * noise;
      ++values;
    }
  }
  CHECK(std::abs(sum / double(values)) < 0.002);
  CHECK(std::sqrt(squares / double(values)) == Approx(0.02).epsilon(0.05));
  CHECK(spikes > 2);
  CHECK(spikes < 25);
}

TEST_CASE("one replica halved at step 150: within 5 % of the new optimum in ten steps") {
  for (const std::size_t replicas : {2U, 4U, 16U, 64U})
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      Scenario scenario = equal_replicas(replicas, 32, seed);
      scenario.events = {{150, 300, replicas - 1, 2, 0}};
      const SimulationResult result = run(scenario);
      INFO(replicas << " replicas, seed " << seed);
      CHECK(result.steps_to_recover(150, 300) >= 5);
      CHECK(result.steps_to_recover(150, 300) <= 10);
      // And stays there.
      for (std::size_t step = 165; step < 300; ++step)
        CHECK(result.steps[step].true_seconds <= 1.05 * result.steps[step].optimum_seconds);
      CHECK(result.steps_to_recover(300, 500) <= 10);
    }
}

TEST_CASE("in steady noise shares stay: at most one change in 500 steps") {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    for (const std::size_t replicas : {2U, 16U, 64U}) {
      INFO(replicas << " equal replicas, seed " << seed);
      CHECK(run(equal_replicas(replicas, 64, seed)).changes == 0);
    }
    // Unequal ones, once the start is over; also where single steps say less.
    for (const double noise : {0.02, 0.1}) {
      Scenario scenario = event_list_scenario(seed);
      scenario.events.clear();
      scenario.steps = 1600;
      scenario.noise = noise;
      const SimulationResult result = run(scenario);
      index_t late = 0;
      for (std::size_t step = 100; step < result.steps.size(); ++step)
        late += result.steps[step].reason.empty() ? 0 : 1;
      INFO("unequal replicas, seed " << seed << ", noise " << noise);
      CHECK(late <= 3);
    }
  }
}

TEST_CASE("over the list of events the model is within 5 % of a clairvoyant controller") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Scenario scenario = event_list_scenario(seed);
    const SimulationResult result = run(scenario);
    INFO("seed " << seed);
    CHECK(result.over_clairvoyant() <= 1.05);
    CHECK(result.changes <= 12);
    CHECK(result.steps_to_recover(0, 150) <= 10);
    CHECK(result.steps_to_recover(150, 300) <= 10);
    CHECK(result.steps_to_recover(300, 520) <= 10);
    CHECK(result.steps_to_recover(700, 900) <= 10);
    // The burst of four steps is ignored.
    for (std::size_t step = 598; step < 650; ++step) CHECK(result.steps[step].reason.empty());
    for (const SimulatedStep& step : result.steps) {
      CHECK(std::accumulate(step.shares.begin(), step.shares.end(), index_t{0}) == 1024);
      for (std::size_t n = 12; n < 16; ++n) CHECK(step.shares[n] <= 64);
    }
  }
}

TEST_CASE("4,096 replicas of three classes") {
  Scenario scenario;
  for (std::size_t n = 0; n < 4096; ++n)
    scenario.replicas.push_back({n % 3 == 0 ? 32.0 : n % 3 == 1 ? 22.0 : 10.0, 0.1, 0});
  scenario.limits.total = 16 * 4096;
  scenario.steps = 80;
  scenario.noise = 0.02;
  scenario.spike_chance = 0.005;
  scenario.events = {{40, kForGood, 0, 2, 0}};
  const SimulationResult result = run(scenario);
  CHECK(result.steps_to_recover(0, 40) <= 10);
  CHECK(result.steps_to_recover(40, 80) <= 10);
  CHECK(result.changes <= 6);
}
