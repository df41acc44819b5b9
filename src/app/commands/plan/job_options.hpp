// The nodes that a job might ask for, each with its best plan, when it would be done and what it
// would cost: what `transformer3d plan` lists and chooses from.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "hetero/forecast/plan_search.hpp"
#include "hetero/simulate/simulated_job.hpp"

namespace t3d {

struct Interval {
  double low = 0, middle = 0, high = 0;  // 5 %, 50 %, 95 %
};

struct JobOption {
  FoundPlan found;
  SimulatedJob job;
  Interval hours, cost;   // of simulated lives
  double in_time = 1;     // part of them within the deadline, where there is one
  bool on_front = false;  // nothing else is both sooner and cheaper
};

struct JobWish {
  std::string name, source;
  index_t steps = 0, sequences = 0;
  double state_bytes = 0;  // of a checkpoint
  std::optional<double> deadline_seconds, budget;
  std::string objective = "time";  // time, cost, pareto
  double risk = 0.95;
};

/// Relative standard error of a predicted step, before a run has corrected it: of measured tables
/// (docs/results/planner.md) and of data sheets.
inline constexpr double kMeasuredError = 0.05, kSheetError = 0.3;

/// One for each set of nodes in which something fits, by ascending time.
[[nodiscard]] std::vector<JobOption> job_options(const std::vector<NodesSearched>& searched,
                                                 const JobWish& wish, const Cluster& cluster);

/// The one to take: the soonest within budget, or the cheapest in time (with probability `risk`).
/// Error(config) that says the nearest possible where none is.
[[nodiscard]] std::size_t choose_option(const std::vector<JobOption>& options, const JobWish& wish);

/// "8 x c1 + 4 x c2"
[[nodiscard]] std::string nodes_text(const std::vector<JobPart>& parts, const Cluster& cluster);
/// "2 x (4 x 2 x 1)"
[[nodiscard]] std::string mesh_text(const Plan& plan);

}  // namespace t3d
