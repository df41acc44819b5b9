// The rules of LB-BSP (bench/baselines/lbbsp.hpp) on a virtual clock, beside the trainer's own.
#include "baselines/lbbsp.hpp"

#include <numeric>

#include "support/catch.hpp"
#include "unit/hetero/share_simulation.hpp"

using namespace t3d;

namespace {

SimulationResult run(const Scenario& scenario, std::unique_ptr<ShareController> controller) {
  return simulate(scenario, controller.get());
}

Scenario quiet(const std::vector<double>& rates, index_t units, index_t steps) {
  Scenario scenario;
  for (const double rate : rates) scenario.replicas.push_back({rate, 0, 0});
  scenario.limits.total = units;
  scenario.steps = steps;
  return scenario;
}

}  // namespace

TEST_CASE("the analytic rule deals in proportion to the predictions, at once") {
  const Scenario scenario = quiet({1, 2, 3}, 12, 6);
  const SimulationResult result = run(scenario, make_lbbsp_analytic(scenario.limits));
  CHECK(result.changes == 1);
  CHECK(result.steps[1].shares == Shares{2, 4, 6});
}

TEST_CASE("the numerical rule goes from straggler to leader, first in large steps") {
  Scenario scenario = quiet({3, 1}, 64, 256);
  scenario.events = {{225, kForGood, 0, 3, 0}};
  const SimulationResult result = run(scenario, make_lbbsp_numeric(scenario.limits));
  const auto after = [&](std::size_t steps) { return result.steps[steps].shares; };
  CHECK(after(4) == Shares{32, 32});
  CHECK(after(5) == Shares{37, 27});
  CHECK(after(15) == Shares{47, 17});
  // 15 seconds against 17: one more step of 5 is too large, then single units back.
  CHECK(after(20) == Shares{52, 12});
  CHECK(after(225) == Shares{48, 16});
  // A jump brings the large steps back.
  CHECK(after(245) == Shares{43, 21});
  CHECK(after(255) == Shares{33, 31});
}

TEST_CASE("beside the trainer's own the rules of LB-BSP do as the reference says") {
  const Scenario scenario = event_list_scenario(1);
  const SimulationResult equal = simulate(scenario, nullptr);
  const SimulationResult analytic = run(scenario, make_lbbsp_analytic(scenario.limits));
  const SimulationResult numeric = run(scenario, make_lbbsp_numeric(scenario.limits));
  const SimulationResult ours = run(scenario, make_model_controller({}, scenario.limits));
  CHECK(equal.over_optimum() > 2.5);
  // Follows noise and spikes, with a change in nearly every step.
  CHECK(analytic.over_clairvoyant() < 1.05);
  CHECK(analytic.changes > 50 * ours.changes);
  // One pair at a time: slow.
  CHECK(numeric.over_optimum() < 1.5);
  CHECK(numeric.over_optimum() > 1.2 * ours.over_optimum());
  CHECK(numeric.changes < 200);
  CHECK(numeric.steps_to_recover(150, 300) > 20);
  for (const SimulationResult& result : {analytic, numeric})
    for (const SimulatedStep& step : result.steps) {
      CHECK(std::accumulate(step.shares.begin(), step.shares.end(), index_t{0}) == 1024);
      for (std::size_t n = 12; n < 16; ++n) CHECK(step.shares[n] <= 64);
    }
}
