// A virtual clock: steps of replicas whose times come from a formula, to try share controllers on
// up to thousands of replicas. Nothing runs and nothing is measured; the same scenario gives the
// same steps everywhere.
//
//   seconds of a replica with x units = (fixed + max(x, saturation) / rate) x noise   (0 units:
//   fixed)
#pragma once
#include <cstdint>
#include <functional>

#include "hetero/balance/deal.hpp"
#include "hetero/balance/share_controller.hpp"

namespace t3d {

struct SimulatedReplica {
  double rate = 1;           // units per second
  double fixed_seconds = 0;  // independent of the units
  index_t saturation = 0;    // fewer units take as long as this many
};

/// What happens to one replica in the steps [from, to).
struct SimulatedEvent {
  index_t from = 0, to = 0;
  std::size_t replica = 0;
  double slow_down = 1;      // its rate is divided by this
  double extra_seconds = 0;  // come on top of its fixed seconds
};
/// As `to`: for good.
inline constexpr index_t kForGood = INT64_MAX;

struct Scenario {
  std::vector<SimulatedReplica> replicas;
  ShareLimits limits;
  std::vector<SimulatedEvent> events;
  index_t steps = 0;
  /// Relative standard deviation of a replica's rate and of its fixed seconds in each step.
  double noise = 0;
  /// Chance of a spike per replica and step, which multiplies its time evenly within these bounds.
  double spike_chance = 0, spike_least = 1.5, spike_most = 2.5;
  std::uint64_t seed = 0;
};

/// A replica's seconds without noise.
struct SimulatedTime {
  double fixed = 0, total = 0;
};
[[nodiscard]] SimulatedTime true_time(const Scenario& scenario, index_t step, std::size_t replica,
                                      index_t units);
/// The same as measured in that step, with noise and spikes.
[[nodiscard]] SimulatedTime measured_time(const Scenario& scenario, index_t step,
                                          std::size_t replica, index_t units);

struct SimulatedStep {
  Shares shares;                   // in force
  double seconds = 0;              // of the slowest replica, with noise
  double true_seconds = 0;         // without
  double optimum_seconds = 0;      // without noise, of the best shares
  double clairvoyant_seconds = 0;  // of the best shares, with the noise of this step
  std::string reason;              // of the controller, where it changed the shares after this step
};

struct SimulationResult {
  std::vector<SimulatedStep> steps;
  index_t changes = 0, moved = 0;  // of shares; units

  /// Sum of the seconds over sum of the optima without noise.
  [[nodiscard]] double over_optimum() const;
  /// Sum of the seconds over that of a controller that knows all rates.
  [[nodiscard]] double over_clairvoyant() const;
  [[nodiscard]] double clairvoyant_over_optimum() const;
  /// Steps from `event` until the shares are within `tolerance` of the optimum (both without
  /// noise); -1 where that does not happen before step `end`.
  [[nodiscard]] index_t steps_to_recover(index_t event, index_t end, double tolerance = 0.05) const;
};

/// The speed of the next step (units per second), from that of the last one.
using SpeedForecast = std::function<double(std::size_t replica, double speed)>;

/// Begins with shares as even as the limits allow. `controller` null: they stay. Controllers that
/// want predictions get those of `forecast`, without one the speed of the last step.
[[nodiscard]] SimulationResult simulate(const Scenario& scenario, ShareController* controller,
                                        const SpeedForecast& forecast = nullptr);

/// 16 replicas of four classes, 900 steps: 0.35 s of messages on replica 0 from step 150 on,
/// replica 5 at half its speed in [300, 520), a burst of four steps on replica 9 at 600, replica 2
/// a quarter slower from 700 on; noise 2 %, spikes 0.5 %.
[[nodiscard]] Scenario event_list_scenario(std::uint64_t seed);

}  // namespace t3d
