// The nodes that a job might ask for, each with its best plan, when it would be done and what it
// would cost: what `transformer3d plan` lists and chooses from.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "forecast/plan_search.hpp"
#include "forecast/simulate/many_lives.hpp"
#include "hetero/cost/memory.hpp"

namespace t3d {

struct Interval {
  double low = 0, middle = 0, high = 0;  // 5 %, 50 %, 95 %
};

struct JobOption {
  FoundPlan found;
  SimulatedJob job;
  Interval hours, cost;                // of simulated lives; infinite where so many do not end
  index_t lives = 0, ended = 0;        // simulated; of these, the ones that end
  double losses = 0, checkpoints = 0;  // in a life, mean
  [[nodiscard]] double ended_part() const {
    return lives > 0 ? static_cast<double>(ended) / static_cast<double>(lives) : 0;
  }
  double in_time = 1;     // part of them within the deadline, where there is one
  bool on_front = false;  // nothing else is both sooner and cheaper
};

struct JobWish {
  std::string name, source;
  index_t steps = 0, sequences = 0;  // steps: that remain
  StateAtRest state;                 // of a whole replica
  std::optional<double> deadline_seconds, budget;
  std::string objective;  // time, cost, pareto; empty = cost with a deadline, else time
  double risk = 0.95;
  /// Between two checkpoints, as the input says: whichever comes first; 0 = not by this. Free: it
  /// does not say; then the minutes may be others, those of SimulatedJob::policy.
  double checkpoint_minutes = 0;
  index_t checkpoint_steps = 0;
  bool checkpoint_free = false, checkpoint_asynchronous = true;
  std::string budget_unit{};  // as it was asked for; empty = that of the prices
};

/// Bytes per second of a file system that was not measured: of a shared one on a busy day.
inline constexpr double kUnknownDisk = 2e8;

/// Relative standard error of a step predicted from measured tables, before a run has corrected it
/// (docs/results/planner.md). Data sheets tell peaks, and no step is faster:
/// SimulatedJob::step_slower. Half of the steps take 1.6 times as long or longer, one in twenty 4
/// times. Published steps (docs/results/planner-published.md) took 1.3, 1.8 and, with slow links, 5
/// times as long.
inline constexpr double kMeasuredError = 0.05, kSheetSlower = 0.7;

inline constexpr index_t kPlannedLives = 400;
/// Simulated lives that tell time and cost: so many, or fewer where nodes are lost so fast that
/// these would take long.
[[nodiscard]] std::vector<JobOutcome> planned_lives(const SimulatedJob& job,
                                                    index_t runs = kPlannedLives);
/// As many as can tell that a deadline is kept with the wished probability: 3 of them may miss it.
[[nodiscard]] index_t planned_runs(const JobWish& wish);

/// One for each set of nodes in which something fits, by ascending time.
[[nodiscard]] std::vector<JobOption> job_options(const std::vector<NodesSearched>& searched,
                                                 const JobWish& wish, const Cluster& cluster);

/// The budget gets the unit of the options' costs. Error(config) where it was asked for in another.
void take_budget_unit(JobWish& wish, const std::vector<JobOption>& options);

/// The one to take of those that keep to budget (in 95 % of the lives) and deadline (with
/// probability `risk`): the soonest, the cheapest, or with "pareto" the one with the least product
/// of hours and cost, where a per cent of either counts alike. Nothing where none keeps to them, or
/// where on none half of the lives end.
[[nodiscard]] std::optional<std::size_t> choose_option(const std::vector<JobOption>& options,
                                                       const JobWish& wish);
/// time, cost or pareto, where nothing was said, too.
[[nodiscard]] std::string objective_of(const JobWish& wish);
/// "the cheapest that meets the deadline in 95 % of the lives"
[[nodiscard]] std::string choice_text(const JobWish& wish);

/// What is nearest to a wish that no option keeps to. Options are not empty.
struct NearestOptions {
  std::size_t soonest = 0, cheapest = 0;
};
[[nodiscard]] NearestOptions nearest_options(const std::vector<JobOption>& options);
/// "no plan keeps to the deadline in 95 % of the lives; the nearest possible, ..."
[[nodiscard]] std::string unmet_text(const std::vector<JobOption>& options, const JobWish& wish);

/// A unit in which so many hours are no small fraction: seconds, minutes or hours.
struct HoursUnit {
  const char* name;
  double per_hour;
};
[[nodiscard]] HoursUnit unit_of_hours(double hours);
/// "4.2 min"
[[nodiscard]] std::string time_text(double hours);

/// "8 x c1 + 4 x c2"
[[nodiscard]] std::string nodes_text(const std::vector<JobPart>& parts, const Cluster& cluster);
/// "2 x (4 x 2 x 1)"; "2 x (4 x 2 x 1), d k j i" where axes have another order than the usual one.
[[nodiscard]] std::string mesh_text(const Plan& plan);

}  // namespace t3d
