// Many simulated lives of one job, and what they have in common: distributions of finish time and
// cost, and where the time went.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "forecast/simulate/job_life.hpp"

namespace t3d {

struct LivesRequest {
  index_t runs = 1000;
  std::uint64_t seed = 1;
  /// Replayed where it is given, else nodes are sampled. Run 0 begins at its beginning, each other
  /// one at a moment of chance.
  const NodeTrace* trace = nullptr;
  /// Of all runs together; what would be more is refused, or ends the runs early.
  double most_events = 1e9;
  bool may_end_early = false;
};

/// Of one run, as the runs of simulate_lives().
[[nodiscard]] JobOutcome simulate_run(const SimulatedJob& job, const SimulationPolicy& policy,
                                      const LivesRequest& request, index_t run,
                                      Timeline* timeline = nullptr);

/// By run; at least one, fewer than asked for where they may end early. Error(config) when they may
/// not, and the first runs show that all together would be more than most_events.
[[nodiscard]] std::vector<JobOutcome> simulate_lives(const SimulatedJob& job,
                                                     const SimulationPolicy& policy,
                                                     const LivesRequest& request);

/// The job without any loss, at its largest size, without spread: seconds from the first start to
/// the end, checkpoints included.
[[nodiscard]] double undisturbed_seconds(const SimulatedJob& job, const SimulationPolicy& policy);

/// A life that has not ended by then will not: a run stops there.
[[nodiscard]] double longest_seconds(const SimulatedJob& job, const SimulationPolicy& policy);

/// What of a distribution is told. Infinity where so many runs did not finish.
struct Spread {
  double p5 = 0, p50 = 0, p90 = 0, p95 = 0, mean = 0;
};
/// Of n sorted values that of rank p (n + 1), rounded outward from the median, at least the first,
/// at most the last: a further value of the same distribution lies between those of p and 1 - p
/// with a probability of 1 - 2 p or more, if n is large enough.
[[nodiscard]] double quantile(std::span<const double> sorted, double p);
[[nodiscard]] Spread spread_of(std::vector<double> values);

struct LivesSummary {
  index_t runs = 0, finished = 0;
  Spread seconds, cost;
  /// Means over the runs, of their time.
  std::array<double, kLifeParts> share{};
  /// Useful time of all time (both summed over the runs).
  double goodput = 0;
  double samples_per_second = 0, mean_nodes = 0;  // over all time
  double losses = 0, roll_backs = 0, reshapes = 0, restarts = 0, checkpoints = 0, lives = 0;
};
[[nodiscard]] LivesSummary summary_of(std::span<const JobOutcome> outcomes);
/// Of the runs, those that finish within `seconds`.
[[nodiscard]] double finish_probability(std::span<const JobOutcome> outcomes, double seconds);

/// The policies that a comparison looks at: the job's own first, then each with one thing changed:
/// copies, interval (half, twice), spares, shrink against wait. Without what makes no difference.
[[nodiscard]] std::vector<SimulationPolicy> policies_to_compare(const SimulatedJob& job);

}  // namespace t3d
