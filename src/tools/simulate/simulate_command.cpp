// transformer3d simulate PLAN.json: no ranks, no MPI, files and arithmetic.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/commas.hpp"
#include "core/error.hpp"
#include "core/utf8.hpp"
#include "forecast/simulate/job_plan.hpp"
#include "io/output.hpp"
#include "io/posix_file.hpp"
#include "run/setup.hpp"
#include "tools/commands.hpp"
#include "tools/output_files.hpp"
#include "tools/simulate/simulation_report.hpp"

namespace t3d {
namespace {

constexpr index_t kMostTraceBytes = index_t{256} << 20;
constexpr index_t kComparedRuns = 200;   // of each policy, the first ones
constexpr double kComparedEvents = 2e7;  // of each, some seconds: then fewer runs

NodeTrace read_trace(const std::string& path) {
  const FileReader file(path);
  if (file.size() > kMostTraceBytes)
    throw_error(ExitCode::config, "{} is too long for a trace: {}", path,
                format_bytes(static_cast<double>(file.size())));
  return parse_any_trace(read_text(file), path);
}

/// "k80: shape 0.32, scale 110 h"
std::string hazards_text(const SimulatedJob& job) {
  std::string text = "drawn";
  for (const SimulatedClass& kind : job.classes) {
    if (kind.hazard.never())
      text += fmt::format("; {} are never lost", kind.name);
    else if (kind.hazard.shape() > 0)
      text += fmt::format("; {}: Weibull, shape {:g}, scale {} h", kind.name, kind.hazard.shape(),
                          readable(kind.hazard.scale_hours(), 6));
    else if (kind.hazard.buckets().size() == 1)
      text +=
          fmt::format("; {}: {:.3g} losses per node and hour", kind.name, kind.hazard.per_hour(0));
    else
      text += fmt::format("; {}: {:.3g} losses per node and hour when new, {:.3g} when old",
                          kind.name, kind.hazard.buckets().front().per_hour,
                          kind.hazard.buckets().back().per_hour);
  }
  return text;
}

std::vector<SimulationPolicy> policies_of(const SimulateCommand& command, const SimulatedJob& job) {
  if (command.policies.empty()) return policies_to_compare(job);
  std::vector<SimulationPolicy> policies{job.policy};
  for (const std::string& text : command.policies)
    policies.push_back(parse_policy(text, job.policy));
  return policies;
}

/// The finished run whose time is nearest to the median; 0 where none finishes.
index_t median_run(const std::vector<JobOutcome>& outcomes) {
  std::vector<index_t> runs(outcomes.size());
  std::iota(runs.begin(), runs.end(), index_t{0});
  const auto middle = runs.begin() + std::ssize(runs) / 2;
  const auto time = [&](index_t run) {
    const JobOutcome& outcome = outcomes[static_cast<std::size_t>(run)];
    return outcome.finished ? outcome.seconds : kNoTime;
  };
  std::nth_element(runs.begin(), middle, runs.end(), [&](index_t a, index_t b) {
    return std::pair(time(a), a) < std::pair(time(b), b);
  });
  return *middle;
}

void write_files(const SimulationReport& report, const LivesRequest& request,
                 const std::string& folder) {
  make_folder(folder);
  const index_t run = median_run(report.outcomes);
  Timeline timeline;
  (void)simulate_run(report.job, report.job.policy, request, run, &timeline);
  const std::string name = report.job.name.empty() ? "job" : report.job.name;
  write_text_durably(folder + "/timeline.svg",
                     timeline_plot(report.job, timeline,
                                   fmt::format("{}: run {} of {}, the median one", name, run,
                                               report.outcomes.size())));
  write_text_durably(folder + "/runs.csv", runs_csv(report));
  write_text_durably(folder + "/result.json", report_json(report));
}

/// Each class's hazard from what was seen of its own nodes; a job's only class, of which nobody
/// says which nodes it has, has all. Returns what stays as planned, and why.
std::vector<std::string> learn_hazards(SimulatedJob& job, const NodeTrace& history) {
  std::vector<std::string> notes;
  if (!history.only_user.empty())
    notes.push_back(fmt::format(
        "{} has the jobs of {} alone: few lives, and losses that other jobs had are not seen "
        "(sacct --allusers)",
        history.source, printable(history.only_user, 40)));
  for (SimulatedClass& kind : job.classes) {
    if (kind.node_list.empty() && job.classes.size() > 1) {
      notes.push_back(fmt::format(
          "{}: the job plan does not say which nodes it has (node_list): hazard as planned",
          kind.name));
      continue;
    }
    const std::vector<NodeLife> lives = lives_of(history, kind.node_list);
    if (lives.empty())
      notes.push_back(fmt::format("{}: {} has none of its nodes {}: hazard as planned", kind.name,
                                  history.source, kind.node_list));
    else
      kind.hazard = update_hazard(kind.hazard, lives);
  }
  return notes;
}

/// "as in sacct.txt, 720.0 h: nodes of rome; those of gpu stay"
std::string replay_text(const SimulatedJob& job, const NodeTrace& trace) {
  std::string text = fmt::format("as in {}, {:.1f} h", trace.source, trace.seconds / 3600);
  if (job.classes.size() == 1) return text;
  std::vector<std::string> others;
  for (const SimulatedClass& kind : job.classes) others.push_back(kind.name);
  others.erase(others.begin());
  return text + fmt::format(": nodes of {}; those of {} stay", job.classes.front().name,
                            fmt::join(others, ", "));
}

/// A slip in `samples`, more likely than not; and times could not be told from each other.
void check_length(const SimulatedJob& job, const std::string& source) {
  constexpr double kYear = 365 * 86400, kMostYears = 30;
  const double years = undisturbed_seconds(job, job.policy) / kYear;
  if (years > kMostYears)
    throw_error(ExitCode::config,
                "{}: samples: {} take {} years at the largest size, without any loss; jobs up "
                "to {:g} years are simulated",
                source, with_commas(job.samples), readable(years), kMostYears);
}

SimulationReport simulated(const SimulateCommand& command, const SimulatedJob& job,
                           LivesRequest request) {
  SimulationReport report;
  report.job = job;
  report.seed = request.seed;
  report.nodes_from =
      request.trace != nullptr ? replay_text(job, *request.trace) : hazards_text(job);
  report.undisturbed_seconds = undisturbed_seconds(job, job.policy);
  report.deadline_seconds = command.deadline_seconds;
  report.outcomes = simulate_lives(job, job.policy, request);
  const auto compared = [&](const SimulationPolicy& policy, std::span<const JobOutcome> outcomes) {
    ComparedPolicy result{policy, summary_of(outcomes), std::nullopt};
    if (command.deadline_seconds)
      result.in_time = finish_probability(outcomes, *command.deadline_seconds);
    return result;
  };
  report.own = compared(job.policy, report.outcomes);
  request.runs = report.compared_runs = std::min(request.runs, kComparedRuns);
  request.may_end_early = true;
  request.most_events = kComparedEvents;
  for (const SimulationPolicy& policy : policies_of(command, job))
    report.policies.push_back(compared(policy, simulate_lives(job, policy, request)));
  return report;
}

void simulate(const SimulateCommand& command) {
  if (!command.output.empty())
    check_replaced(command.output,
                   {"simulate", {"timeline.svg", "runs.csv", "result.json"}, {"timeline.svg"}},
                   {command.plan, command.trace, command.history});
  SimulatedJob job = parse_job_plan(read_record_file(command.plan), command.plan);
  check_length(job, command.plan);
  std::vector<std::string> notes;
  if (!command.history.empty()) notes = learn_hazards(job, read_trace(command.history));
  std::optional<NodeTrace> trace;
  if (command.trace != "weibull") trace = read_trace(command.trace);
  const LivesRequest request{command.runs, static_cast<std::uint64_t>(command.seed),
                             trace ? &*trace : nullptr};
  SimulationReport report = simulated(command, job, request);
  report.notes = std::move(notes);
  if (!command.output.empty()) write_files(report, request, command.output);
  write_output(command.json ? report_json(report) : report_text(report));
  flush_output();
}

}  // namespace

int run_simulation(Communicator& world, const CommandLine& command) {
  all_or_none(world, [&] {
    if (world.rank() == 0) simulate(command.simulate);
  });
  return 0;
}

}  // namespace t3d
