#include "forecast/simulate/many_lives.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "forecast/simulate/random_stream.hpp"

namespace t3d {
namespace {

/// A run that takes so many times its undisturbed time, and a month, will not end.
constexpr double kMostTimes = 50, kMonth = 30 * 86400;

double sum_of(std::span<const JobOutcome> outcomes, index_t JobOutcome::*count) {
  double sum = 0;
  for (const JobOutcome& outcome : outcomes) sum += static_cast<double>(outcome.*count);
  return sum;
}

}  // namespace

double undisturbed_seconds(const SimulatedJob& job, const SimulationPolicy& policy) {
  const JobSize& size = job.sizes.back();
  const bool copies = policy.recovery == Recovery::in_place && policy.copies > 1;
  const double step = size.step_seconds + (copies ? job.costs.copy_seconds : 0);
  const double save =
      std::max(job.costs.checkpoint_stall_seconds, job.costs.checkpoint_write_seconds);
  return job.costs.restart_seconds + job.samples / size.samples_per_step * step + save;
}

double longest_seconds(const SimulatedJob& job, const SimulationPolicy& policy) {
  return kMostTimes * undisturbed_seconds(job, policy) + kMonth;
}

JobOutcome simulate_run(const SimulatedJob& job, const SimulationPolicy& policy,
                        const LivesRequest& request, index_t run, Timeline* timeline) {
  const LifeDraw draw{request.seed, run, request.trace != nullptr};
  const LifeLimits limits{longest_seconds(job, policy)};
  std::vector<index_t> wanted = wanted_nodes(job, policy);
  if (request.trace == nullptr) {
    const auto source = sampled_nodes(job, std::move(wanted), request.seed, run);
    return simulate_life(job, policy, *source, draw, limits, timeline);
  }
  RandomStream offsets(request.seed, "offset", run);
  const double offset = run == 0 ? 0 : offsets.uniform() * request.trace->seconds;
  const auto source = replayed_nodes(*request.trace, std::move(wanted), offset);
  return simulate_life(job, policy, *source, draw, limits, timeline);
}

std::vector<JobOutcome> simulate_lives(const SimulatedJob& job, const SimulationPolicy& policy,
                                       const LivesRequest& request) {
  std::vector<JobOutcome> outcomes;
  double events =
      request.trace == nullptr
          ? 0
          : static_cast<double>(request.trace->changes.size() * std::size_t(request.runs));
  for (index_t run = 0; run < request.runs; ++run) {
    outcomes.push_back(simulate_run(job, policy, request, run));
    events += static_cast<double>(outcomes.back().events);
    if (request.may_end_early && events > request.most_events) break;
    const double all = events / static_cast<double>(run + 1) * static_cast<double>(request.runs);
    const bool hopeless = all > request.most_events && (run == 0 || events > request.most_events);
    if (hopeless && !request.may_end_early)
      throw_error(ExitCode::config,
                  "{} runs would be about {:.2g} events, more than {:.0e}: policy '{}' has about "
                  "{:.0f} in each run; fewer runs, or a longer interval",
                  request.runs, all, request.most_events, policy.name,
                  events / static_cast<double>(run + 1));
  }
  return outcomes;
}

double quantile(std::span<const double> sorted, double p) {
  T3D_CHECK(!sorted.empty(), "no values");
  const auto count = static_cast<double>(sorted.size());
  const double place = p * (count + 1);
  const double rank = std::clamp(p < 0.5 ? std::floor(place) : std::ceil(place), 1.0, count);
  return sorted[static_cast<std::size_t>(rank) - 1];
}

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  return {quantile(values, 0.05), quantile(values, 0.5), quantile(values, 0.9),
          quantile(values, 0.95), mean};
}

LivesSummary summary_of(std::span<const JobOutcome> outcomes) {
  LivesSummary summary;
  summary.runs = std::ssize(outcomes);
  std::vector<double> seconds, cost;
  double all = 0, nodes = 0, samples = 0;
  for (const JobOutcome& outcome : outcomes) {
    seconds.push_back(outcome.finished ? outcome.seconds : kNoTime);
    cost.push_back(outcome.finished ? outcome.cost : kNoTime);
    if (outcome.finished) ++summary.finished;
    all += outcome.seconds;
    nodes += outcome.node_seconds;
    samples += outcome.samples;
    for (std::size_t part = 0; part < kLifeParts; ++part)
      summary.share[part] += outcome.parts[part];
  }
  for (double& share : summary.share) share /= all;
  summary.goodput = summary.share[static_cast<std::size_t>(LifePart::useful)];
  summary.seconds = spread_of(std::move(seconds));
  summary.cost = spread_of(std::move(cost));
  summary.samples_per_second = samples / all;
  summary.mean_nodes = nodes / all;
  const auto runs = static_cast<double>(summary.runs);
  summary.losses = sum_of(outcomes, &JobOutcome::losses) / runs;
  summary.roll_backs = sum_of(outcomes, &JobOutcome::roll_backs) / runs;
  summary.reshapes = sum_of(outcomes, &JobOutcome::reshapes) / runs;
  summary.restarts = sum_of(outcomes, &JobOutcome::restarts) / runs;
  summary.checkpoints = sum_of(outcomes, &JobOutcome::checkpoints) / runs;
  summary.lives = sum_of(outcomes, &JobOutcome::lives) / runs;
  return summary;
}

double finish_probability(std::span<const JobOutcome> outcomes, double seconds) {
  const auto in_time = std::count_if(outcomes.begin(), outcomes.end(), [&](const JobOutcome& o) {
    return o.finished && o.seconds <= seconds;
  });
  return static_cast<double>(in_time) / static_cast<double>(outcomes.size());
}

std::vector<SimulationPolicy> policies_to_compare(const SimulatedJob& job) {
  std::vector<SimulationPolicy> policies{job.policy};
  const auto with = [&](const char* name, const auto& change) {
    SimulationPolicy policy = job.policy;
    policy.name = name;
    change(policy);
    policies.push_back(std::move(policy));
  };
  const bool in_place = job.policy.recovery == Recovery::in_place;
  if (in_place)
    with("recovery=requeue", [](SimulationPolicy& p) { p.recovery = Recovery::requeue; });
  else
    with("recovery=in_place", [](SimulationPolicy& p) { p.recovery = Recovery::in_place; });
  if (in_place && job.policy.copies > 1) {
    with("copies=1", [](SimulationPolicy& p) { p.copies = 1; });
  } else {
    with("recovery=in_place,copies=2", [](SimulationPolicy& p) {
      p.recovery = Recovery::in_place;
      p.copies = 2;
    });
  }
  const double interval = job.policy.interval_seconds;
  if (interval > 0) {
    with("interval=auto", [](SimulationPolicy& p) { p.interval_seconds = 0; });
    with("interval=half", [](SimulationPolicy& p) { p.interval_seconds /= 2; });
    with("interval=twice", [](SimulationPolicy& p) { p.interval_seconds *= 2; });
  } else {
    with("interval=10m", [](SimulationPolicy& p) { p.interval_seconds = 600; });
    with("interval=1h", [](SimulationPolicy& p) { p.interval_seconds = 3600; });
  }
  if (!in_place) return policies;
  with("one spare more", [](SimulationPolicy& p) { ++p.spares; });
  if (job.sizes.size() < 2) return policies;
  for (const Sizing sizing : {Sizing::rule, Sizing::shrink, Sizing::wait})
    if (sizing != job.policy.sizing)
      with(sizing == Sizing::rule     ? "sizing=rule"
           : sizing == Sizing::shrink ? "sizing=shrink"
                                      : "sizing=wait",
           [&](SimulationPolicy& p) { p.sizing = sizing; });
  return policies;
}

}  // namespace t3d
