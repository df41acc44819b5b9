// What `transformer3d simulate` found, and its forms: text, JSON, csv.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "forecast/simulate/many_lives.hpp"

namespace t3d {

struct ComparedPolicy {
  SimulationPolicy policy;
  LivesSummary summary;
  std::optional<double> in_time;  // probability to meet the deadline
};

struct SimulationReport {
  SimulatedJob job;
  std::string nodes_from;  // a trace, or how they are drawn
  std::vector<std::string> notes;
  std::uint64_t seed = 1;
  double undisturbed_seconds = 0;
  std::optional<double> deadline_seconds;
  std::vector<JobOutcome> outcomes;  // of the job's own policy, by run
  ComparedPolicy own;                // of all runs
  /// Each of the first compared_runs runs (of fewer where they have very many events); the first is
  /// the job's own.
  std::vector<ComparedPolicy> policies;
  index_t compared_runs = 0;
};

/// For people, 80 columns but for names.
[[nodiscard]] std::string report_text(const SimulationReport& report);
/// One object in one line. Infinite times (runs that do not finish) are null.
[[nodiscard]] std::string report_json(const SimulationReport& report);
/// A line for each run: run, finished, seconds, cost, each part of the time in seconds, counts.
[[nodiscard]] std::string runs_csv(const SimulationReport& report);

/// The life of one run as a standalone SVG: nodes here and in use over the time, where the time
/// went below, checkpoints as ticks.
[[nodiscard]] std::string timeline_plot(const SimulatedJob& job, const Timeline& timeline,
                                        const std::string& title);

}  // namespace t3d
