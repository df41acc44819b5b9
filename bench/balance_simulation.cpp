// Share controllers beside each other on a virtual clock (tests/unit/hetero/share_simulation.hpp):
// the list of events of event_list_scenario, means over ten seeds. Simulated: no machine is
// measured.
//
//   build/cpu/bench/t3d_bench_balance_simulation [--why]     --why: every change of ours, one seed
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

#include "baselines/lbbsp.hpp"
#include "baselines/speed_predictor.hpp"
#include "unit/hetero/share_simulation.hpp"

using namespace t3d;

namespace {

constexpr std::size_t kSeeds = 10;
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::array<index_t, 4> kEvents{0, 150, 300, 700};

struct Row {
  double over_optimum = 0, over_clairvoyant = 0, changes = 0, moved = 0;
  std::array<std::vector<double>, kEvents.size()> recover;  // by seed; infinity = never
};

/// What every replica predicts of itself.
SpeedForecast forecast_of(PredictorKind kind, std::size_t replicas) {
  std::vector<std::shared_ptr<SpeedPredictor>> predictors;
  for (std::size_t n = 0; n < replicas; ++n) predictors.push_back(make_predictor(kind, 0));
  return [predictors](std::size_t replica, double speed) {
    predictors[replica]->observe(speed, {});
    return predictors[replica]->predict();
  };
}

using MakeController = std::unique_ptr<ShareController> (*)(const ShareLimits&);

std::unique_ptr<ShareController> make_ours(const ShareLimits& limits) {
  return make_model_controller({}, limits);
}

/// Equal shares where there is no controller.
Row run(MakeController make, PredictorKind predictor = PredictorKind::last) {
  Row row;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Scenario scenario = event_list_scenario(seed);
    const auto controller = make == nullptr ? nullptr : make(scenario.limits);
    const SimulationResult result =
        simulate(scenario, controller.get(), forecast_of(predictor, scenario.replicas.size()));
    row.over_optimum += result.over_optimum() / kSeeds;
    row.over_clairvoyant += result.over_clairvoyant() / kSeeds;
    row.changes += double(result.changes) / kSeeds;
    row.moved += double(result.moved) / kSeeds;
    for (std::size_t event = 0; event < kEvents.size(); ++event) {
      const index_t steps = result.steps_to_recover(kEvents[event], scenario.steps);
      row.recover[event].push_back(steps < 0 ? kNever : double(steps));
    }
  }
  return row;
}

double clairvoyant() {
  double ratio = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Scenario scenario = event_list_scenario(seed);
    ratio += simulate(scenario, nullptr).clairvoyant_over_optimum() / kSeeds;
  }
  return ratio;
}

void print(const Row& row, const std::string& name) {
  std::string recover;
  for (std::vector<double> steps : row.recover) {
    std::sort(steps.begin(), steps.end());
    const auto text = [](double count) {
      return count == kNever ? std::string("never") : fmt::format("{}", count);
    };
    recover += fmt::format("{:>7} {:>5}", text(steps[kSeeds / 2]), text(steps.back()));
  }
  fmt::print("{:<16} {:>8.3f} {:>12.3f} {:>8.1f} {:>8.0f}{}\n", name, row.over_optimum,
             row.over_clairvoyant, row.changes, row.moved, recover);
}

void explain() {
  const Scenario scenario = event_list_scenario(0);
  const auto controller = make_ours(scenario.limits);
  const SimulationResult result = simulate(scenario, controller.get());
  for (std::size_t step = 0; step < result.steps.size(); ++step)
    if (!result.steps[step].reason.empty())
      fmt::print("step {:>3}: {}\n", step, result.steps[step].reason);
}

/// Seconds of this machine per step of the controller, for many replicas.
void time_controller(std::size_t replicas) {
  using Clock = std::chrono::steady_clock;
  Scenario scenario;
  for (std::size_t n = 0; n < replicas; ++n)
    scenario.replicas.push_back({n % 4 == 0 ? 45.0 : 110.0, 0.05, 0});
  scenario.limits.total = 16 * index_t(replicas);
  scenario.noise = 0.02;
  scenario.spike_chance = 0.005;
  const auto controller = make_ours(scenario.limits);
  Shares shares = deal_evenly(replicas, scenario.limits);
  double seconds = 0, most = 0;
  index_t changes = 0;
  constexpr index_t kSteps = 200;
  for (index_t step = 0; step < kSteps; ++step) {
    std::vector<ReplicaTimes> times;
    for (std::size_t n = 0; n < replicas; ++n) {
      const SimulatedTime time = measured_time(scenario, step, n, shares[n]);
      times.push_back({time.total, time.fixed, 0});
    }
    const auto start = Clock::now();
    auto changed = controller->observe(times, shares);
    const double taken = std::chrono::duration<double>(Clock::now() - start).count();
    seconds += taken;
    most = std::max(most, taken);
    if (!changed) continue;
    ++changes;
    shares = std::move(*changed);
  }
  fmt::print(
      "model, {:>5} replicas: {:.3f} ms per step, at most {:.1f} ms, {} changes in {} steps\n",
      replicas, 1e3 * seconds / kSteps, 1e3 * most, changes, kSteps);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--why") == 0) {
    explain();
    return 0;
  }
  fmt::print("{:<16} {:>8} {:>12} {:>8} {:>8}  {}\n", "controller", "/optimum", "/clairvoyant",
             "changes", "moved", "steps to 5 %, median and worst, at 0 | 150 | 300 | 700");
  fmt::print("{:<16} {:>8.3f} {:>12.3f}\n", "clairvoyant", clairvoyant(), 1.0);
  print(run(nullptr), "equal");
  for (const PredictorKind predictor :
       {PredictorKind::last, PredictorKind::median, PredictorKind::kalman, PredictorKind::arx,
        PredictorKind::narx, PredictorKind::automatic})
    print(run(make_lbbsp_analytic, predictor), fmt::format("analytic, {}", predictor));
  print(run(make_lbbsp_numeric), "lbbsp_numeric");
  print(run(make_ours), "model");
  for (const std::size_t replicas : {16U, 256U, 4096U}) time_controller(replicas);
}
