// Sizes over a run: which nodes and which batch for each part of the training, so that the same
// progress costs less or is there sooner than with any one size. Pure arithmetic.
//
// Every size does every stretch in known hours at a known cost, and a change of size costs a wait
// in the queue and a restart. For a price of an hour the best schedule is a shortest path through
// (stretch, changes so far, size); prices from 0 on give the schedules of which no mixture of
// others is better, and of these the best within the limits is taken.
#pragma once
#include <limits>
#include <vector>

#include "forecast/elastic/noise_law.hpp"

namespace t3d {

/// Nodes with a plan for a batch.
struct ElasticSize {
  double batch = 0;  // sequences
  double step_seconds = 0;
  double price_per_hour = 0;  // of its nodes
  /// What lives with losses and checkpoints take over the steps alone; >= 1.
  double hours_factor = 1, cost_factor = 1;
  /// From the end of the life before to the first step; nodes cost from the restart on.
  double queue_hours = 0, restart_hours = 0;
  [[nodiscard]] double hours(const Stretch& stretch) const;
  [[nodiscard]] double cost(const Stretch& stretch) const;
};

struct ElasticPhase {
  std::size_t size = 0;
  double steps = 0;                        // of its own batch
  double first_noise = 0, last_noise = 0;  // noise scale, sequences
  double progress = 0;
  double hours = 0, cost = 0;  // with the change of size before it
};

struct ElasticSchedule {
  std::vector<ElasticPhase> phases;
  double hours = 0, cost = 0, steps = 0, sequences = 0;
};

/// That size of each stretch.
[[nodiscard]] ElasticSchedule schedule_of(const std::vector<Stretch>& stretches,
                                          const std::vector<ElasticSize>& sizes,
                                          const std::vector<std::size_t>& choice);
/// One size throughout.
[[nodiscard]] ElasticSchedule fixed_schedule(const std::vector<Stretch>& stretches,
                                             const std::vector<ElasticSize>& sizes,
                                             std::size_t size);

struct ElasticLimits {
  double hours = std::numeric_limits<double>::infinity();
  double cost = std::numeric_limits<double>::infinity();
  [[nodiscard]] bool keeps(const ElasticSchedule& schedule) const {
    constexpr double kRounding = 1 + 1e-9;
    return schedule.hours <= hours * kRounding && schedule.cost <= cost * kRounding;
  }
};

inline constexpr int kMostPhases = 6;

/// The soonest within the limits, or the cheapest; no phases where none keeps to them. `sizes` may
/// not be empty.
[[nodiscard]] ElasticSchedule best_schedule(const std::vector<Stretch>& stretches,
                                            const std::vector<ElasticSize>& sizes,
                                            const ElasticLimits& limits, bool by_cost);
/// The same among schedules of one size.
[[nodiscard]] ElasticSchedule best_fixed(const std::vector<Stretch>& stretches,
                                         const std::vector<ElasticSize>& sizes,
                                         const ElasticLimits& limits, bool by_cost);

}  // namespace t3d
