#include "unit/hetero/share_simulation.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/random.hpp"

namespace t3d {
namespace {

bool in_force(const SimulatedEvent& event, index_t step) {
  return event.from <= step && step < event.to;
}

/// The best shares of a step, solved again only where an event begins or ends.
class Clairvoyant {
 public:
  explicit Clairvoyant(const Scenario& scenario) : scenario_(scenario) {}

  const Shares& shares(index_t step) {
    const bool changed = std::any_of(
        scenario_.events.begin(), scenario_.events.end(),
        [&](const SimulatedEvent& event) { return event.from == step || event.to == step; });
    if (shares_.empty() || changed)
      shares_ = deal(scenario_.replicas.size(), scenario_.limits,
                     [&](std::size_t replica, index_t units) {
                       return true_time(scenario_, step, replica, units).total;
                     });
    return shares_;
  }

 private:
  const Scenario& scenario_;
  Shares shares_;
};

using TimeOf = SimulatedTime (*)(const Scenario&, index_t, std::size_t, index_t);

double slowest(const Scenario& scenario, index_t step, const Shares& shares, TimeOf time_of) {
  double seconds = 0;
  for (std::size_t n = 0; n < shares.size(); ++n)
    seconds = std::max(seconds, time_of(scenario, step, n, shares[n]).total);
  return seconds;
}

std::vector<ReplicaTimes> report(const Scenario& scenario, index_t step, const Shares& shares,
                                 const SpeedForecast& forecast) {
  std::vector<ReplicaTimes> times(shares.size());
  for (std::size_t n = 0; n < shares.size(); ++n) {
    const SimulatedTime time = measured_time(scenario, step, n, shares[n]);
    const double speed = double(shares[n]) / time.total;
    times[n] = {time.total, time.fixed, forecast ? forecast(n, speed) : speed};
  }
  return times;
}

}  // namespace

SimulatedTime true_time(const Scenario& scenario, index_t step, std::size_t replica,
                        index_t units) {
  const SimulatedReplica& machine = scenario.replicas[replica];
  double rate = machine.rate, fixed = machine.fixed_seconds;
  for (const SimulatedEvent& event : scenario.events) {
    if (event.replica != replica || !in_force(event, step)) continue;
    rate /= event.slow_down;
    fixed += event.extra_seconds;
  }
  const index_t costs = units == 0 ? 0 : std::max(units, machine.saturation);
  return {fixed, fixed + double(costs) / rate};
}

SimulatedTime measured_time(const Scenario& scenario, index_t step, std::size_t replica,
                            index_t units) {
  const SimulatedTime time = true_time(scenario, step, replica, units);
  const RandomKey key{scenario.seed, stream_of("times")};
  const index_t at = 4 * (step * std::ssize(scenario.replicas) + index_t(replica));
  const auto noisy = [&](index_t index) {
    return std::max(0.1, 1 + scenario.noise * random_normal(key, at + index));
  };
  double spike = 1;
  if (const RandomKey spikes{scenario.seed, stream_of("spikes")};
      random_uniform(spikes, at) < scenario.spike_chance)
    spike = scenario.spike_least +
            (scenario.spike_most - scenario.spike_least) * double(random_uniform(spikes, at + 1));
  const double fixed = spike * time.fixed * noisy(0);
  return {fixed, fixed + spike * (time.total - time.fixed) * noisy(1)};
}

SimulationResult simulate(const Scenario& scenario, ShareController* controller,
                          const SpeedForecast& forecast) {
  T3D_CHECK(!scenario.replicas.empty(), "a scenario without replicas");
  SimulationResult result;
  Clairvoyant clairvoyant(scenario);
  Shares shares = deal_evenly(scenario.replicas.size(), scenario.limits);
  for (index_t step = 0; step < scenario.steps; ++step) {
    SimulatedStep& now = result.steps.emplace_back();
    const Shares& best = clairvoyant.shares(step);
    now.shares = shares;
    now.seconds = slowest(scenario, step, shares, measured_time);
    now.true_seconds = slowest(scenario, step, shares, true_time);
    now.optimum_seconds = slowest(scenario, step, best, true_time);
    now.clairvoyant_seconds = slowest(scenario, step, best, measured_time);
    if (controller == nullptr) continue;
    auto changed = controller->observe(report(scenario, step, shares, forecast), shares);
    if (!changed) continue;
    now.reason = controller->reason();
    ++result.changes;
    result.moved += units_moved(shares, *changed);
    shares = std::move(*changed);
  }
  return result;
}

double SimulationResult::over_optimum() const {
  double seconds = 0, optimum = 0;
  for (const SimulatedStep& step : steps) {
    seconds += step.seconds;
    optimum += step.optimum_seconds;
  }
  return seconds / optimum;
}

double SimulationResult::clairvoyant_over_optimum() const {
  double seconds = 0, optimum = 0;
  for (const SimulatedStep& step : steps) {
    seconds += step.clairvoyant_seconds;
    optimum += step.optimum_seconds;
  }
  return seconds / optimum;
}

double SimulationResult::over_clairvoyant() const {
  return over_optimum() / clairvoyant_over_optimum();
}

index_t SimulationResult::steps_to_recover(index_t event, index_t end, double tolerance) const {
  for (index_t step = event; step < std::min(end, std::ssize(steps)); ++step) {
    const SimulatedStep& at = steps[static_cast<std::size_t>(step)];
    if (at.true_seconds <= (1 + tolerance) * at.optimum_seconds) return step - event;
  }
  return -1;
}

Scenario event_list_scenario(std::uint64_t seed) {
  Scenario scenario;
  for (const auto& [rate, saturation] :
       {std::pair{300.0, index_t{24}}, {110.0, 24}, {90.0, 8}, {45.0, 8}})
    scenario.replicas.insert(scenario.replicas.end(), 4, {rate, 0.05, saturation});
  scenario.limits.total = 1024;
  scenario.limits.most.assign(16, 1024);
  std::fill(scenario.limits.most.begin() + 12, scenario.limits.most.end(), 64);
  scenario.events = {{150, kForGood, 0, 1, 0.35},
                     {300, 520, 5, 2, 0},
                     {600, 604, 9, 3, 0},
                     {700, kForGood, 2, 1 / 0.75, 0}};
  scenario.steps = 900;
  scenario.noise = 0.02;
  scenario.spike_chance = 0.005;
  scenario.seed = seed;
  return scenario;
}

}  // namespace t3d
