#include "app/commands/plan/job_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "hetero/forecast/axis_order.hpp"

namespace t3d {
namespace {

constexpr double kMostEvents = 1e7;   // of all lives of a set of nodes: seconds
constexpr double kStepSpread = 0.03;  // of one step's time, from run to run on shared nodes

Interval interval_of(const Spread& spread, double unit) {
  return {spread.p5 / unit, spread.p50 / unit, spread.p95 / unit};
}

bool measured(const std::vector<JobPart>& parts, const Cluster& cluster) {
  return std::all_of(parts.begin(), parts.end(), [&](const JobPart& part) {
    return cluster.classes[part.node_class].calibration.state == Calibrated::measured;
  });
}

/// `smaller` asks for no more nodes of any class.
bool within(const std::vector<JobPart>& smaller, const std::vector<JobPart>& parts) {
  return std::all_of(smaller.begin(), smaller.end(), [&](const JobPart& one) {
    return std::any_of(parts.begin(), parts.end(), [&](const JobPart& other) {
      return other.node_class == one.node_class && other.nodes >= one.nodes;
    });
  });
}

SimulatedClass simulated_class(const NodeClass& own, index_t nodes) {
  SimulatedClass result;
  result.name = own.name;
  result.nodes = nodes;
  result.price_per_hour = own.price_per_node_hour;
  if (own.hazard_scale_hours > 0)
    result.hazard = Hazard::weibull(own.hazard_shape, own.hazard_scale_hours);
  result.warned = own.preemptible;
  result.node_list = own.node_list;
  if (own.return_hours > 0) result.return_seconds = own.return_hours * 3600;
  return result;
}

JobSize size_of_plan(const FoundPlan& found, const std::vector<JobPart>& classes,
                     const JobWish& wish, const Cluster& cluster) {
  JobSize size;
  size.name = nodes_text(found.parts, cluster) + ", " + mesh_text(found.plan);
  for (const JobPart& part : classes) {
    const auto own = std::find_if(found.parts.begin(), found.parts.end(), [&](const JobPart& one) {
      return one.node_class == part.node_class;
    });
    size.nodes.push_back(own == found.parts.end() ? 0 : own->nodes);
  }
  size.step_seconds = found.seconds();
  size.samples_per_step = static_cast<double>(wish.sequences);
  return size;
}

/// Replicas that update by themselves have optimizers of their own.
double checkpoint_bytes(const Plan& plan, const StateAtRest& state) {
  const index_t optimizers = plan.updates_locally() ? std::ssize(plan.replicas) : 1;
  return static_cast<double>(state.weights + optimizers * state.optimizer);
}

/// Seconds that a checkpoint takes: the copy in memory stops the step, the writing goes on beside.
JobCosts costs_of(const FoundPlan& found, const JobWish& wish, const Cluster& cluster) {
  constexpr double kMemoryRate = 4e9;  // bytes per second
  const JobNodes nodes(cluster, found.parts);
  const double bytes = checkpoint_bytes(found.plan, wish.state);
  const auto ranks = static_cast<double>(nodes.ranks());
  const double write = cluster.storage.write_seconds(bytes, nodes.nodes()),
               read = cluster.storage.read_seconds(bytes, nodes.nodes());
  JobCosts costs;
  costs.checkpoint_stall_seconds = bytes / ranks / kMemoryRate;
  costs.checkpoint_write_seconds =
      std::max(costs.checkpoint_stall_seconds, write > 0 ? write : bytes / kUnknownDisk);
  costs.restart_seconds =
      cluster.startup.seconds(nodes.ranks()) + (read > 0 ? read : bytes / kUnknownDisk);
  costs.reshape_seconds = costs.restart_seconds;
  return costs;
}

/// What the strictest of the partitions allows: a job ends where one of its components does. Of
/// grace those count whose jobs give way to others.
JobSite site_of(const FoundPlan& found, const Cluster& cluster) {
  JobSite site;
  std::optional<double> grace;
  for (const JobPart& part : found.parts) {
    const NodeClass& own = cluster.classes[part.node_class];
    const SchedulerPartition* partition = cluster.find_partition(own);
    if (own.preemptible) {
      const double warning = partition == nullptr ? 0 : partition->grace_seconds;
      grace = std::min(grace.value_or(warning), warning);
    }
    if (partition != nullptr && partition->time_limit_seconds > 0)
      site.walltime_seconds = std::min(site.walltime_seconds, partition->time_limit_seconds);
  }
  site.grace_seconds = grace.value_or(0);
  site.queue_median_seconds = site.queue_p90_seconds = cluster.scheduler.requeue_delay_seconds;
  return site;
}

/// Costs of all options are compared, so they are in one currency; a class without a price is free
/// beside one that has one. Empty where none has.
std::string currency_of(const std::vector<NodesSearched>& searched, const Cluster& cluster) {
  const NodeClass* priced = nullptr;
  for (const NodesSearched& set : searched)
    for (const JobPart& part : set.parts) {
      const NodeClass& one = cluster.classes[part.node_class];
      if (set.plans.empty() || one.price_per_node_hour <= 0) continue;
      if (priced != nullptr && priced->currency != one.currency)
        throw_error(
            ExitCode::config,
            "class {} has a price in \"{}\", class {} in \"{}\": costs can only be compared "
            "in one currency",
            priced->name, priced->currency, one.name, one.currency);
      priced = &one;
    }
  if (priced == nullptr) return {};
  return priced->currency.empty() ? "money" : priced->currency;
}

double checkpoint_interval(const JobWish& wish, double step_seconds) {
  constexpr double kShortest = 1, kLongest = 1e9;  // that a job plan may say
  double interval = wish.checkpoint_seconds;
  const double steps = static_cast<double>(wish.checkpoint_steps) * step_seconds;
  if (steps > 0) interval = interval > 0 ? std::min(interval, steps) : steps;
  return interval > 0 ? std::clamp(interval, kShortest, kLongest) : 0;
}

SimulatedJob simulated_job(const NodesSearched& own, const std::vector<NodesSearched>& all,
                           const JobWish& wish, const Cluster& cluster) {
  const FoundPlan& best = own.plans.front();
  SimulatedJob job;
  job.name = wish.name;
  job.source = wish.source;
  job.samples = static_cast<double>(wish.steps) * static_cast<double>(wish.sequences);
  for (const JobPart& part : own.parts)
    job.classes.push_back(simulated_class(cluster.classes[part.node_class], part.nodes));
  job.currency = currency_of(all, cluster);
  if (job.currency.empty()) {
    job.currency = "node-hours";
    for (SimulatedClass& one : job.classes) one.price_per_hour = 1;
  }
  for (const NodesSearched& other : all)
    if (!other.plans.empty() && within(other.parts, own.parts))
      job.sizes.push_back(size_of_plan(other.plans.front(), own.parts, wish, cluster));
  std::sort(job.sizes.begin(), job.sizes.end(), [](const JobSize& a, const JobSize& b) {
    return a.samples_per_second() < b.samples_per_second();
  });
  // Sizes that are no faster than the wanted one; the wanted one last.
  const double wanted = static_cast<double>(wish.sequences) / best.seconds();
  std::erase_if(job.sizes, [&](const JobSize& size) {
    return size.samples_per_second() > wanted * (1 + 1e-12);
  });
  job.step_spread = kStepSpread;
  job.step_error = measured(own.parts, cluster) ? kMeasuredError : kSheetError;
  job.costs = costs_of(best, wish, cluster);
  job.site = site_of(best, cluster);
  job.policy.interval_seconds = checkpoint_interval(wish, best.seconds());
  return job;
}

void mark_front(std::vector<JobOption>& options) {
  for (JobOption& one : options)
    one.on_front = std::none_of(options.begin(), options.end(), [&](const JobOption& other) {
      const bool no_worse =
          other.hours.middle <= one.hours.middle && other.cost.middle <= one.cost.middle;
      return no_worse &&
             (other.hours.middle < one.hours.middle || other.cost.middle < one.cost.middle);
    });
}

}  // namespace

std::vector<JobOutcome> planned_lives(const SimulatedJob& job) {
  LivesRequest request;
  request.runs = kPlannedLives;
  request.most_events = kMostEvents;
  request.may_end_early = true;
  return simulate_lives(job, job.policy, request);
}

std::vector<JobOption> job_options(const std::vector<NodesSearched>& searched, const JobWish& wish,
                                   const Cluster& cluster) {
  std::vector<JobOption> options;
  for (const NodesSearched& one : searched) {
    if (one.plans.empty()) continue;
    JobOption option;
    option.found = one.plans.front();
    option.job = simulated_job(one, searched, wish, cluster);
    const std::vector<JobOutcome> lives = planned_lives(option.job);
    const LivesSummary summary = summary_of(lives);
    option.lives = summary.runs;
    option.ended = summary.finished;
    option.hours = interval_of(summary.seconds, 3600);
    option.cost = interval_of(summary.cost, 1);
    if (wish.deadline_seconds) option.in_time = finish_probability(lives, *wish.deadline_seconds);
    options.push_back(std::move(option));
  }
  std::sort(options.begin(), options.end(),
            [](const JobOption& a, const JobOption& b) { return a.hours.middle < b.hours.middle; });
  mark_front(options);
  return options;
}

std::string objective_of(const JobWish& wish) {
  if (!wish.objective.empty()) return wish.objective;
  return wish.deadline_seconds ? "cost" : "time";
}

namespace {

/// What is to be small.
double objective_value(const JobOption& one, const std::string& objective) {
  if (objective == "cost") return one.cost.middle;
  if (objective == "time") return one.hours.middle;
  return one.hours.middle * one.cost.middle;
}

}  // namespace

std::optional<std::size_t> choose_option(const std::vector<JobOption>& options,
                                         const JobWish& wish) {
  const std::string objective = objective_of(wish);
  std::optional<std::size_t> best;
  for (std::size_t at = 0; at < options.size(); ++at) {
    const JobOption& one = options[at];
    if (!std::isfinite(one.hours.middle)) continue;
    if (wish.budget && one.cost.high > *wish.budget) continue;
    if (wish.deadline_seconds && one.in_time < wish.risk) continue;
    if (!best || objective_value(one, objective) < objective_value(options[*best], objective))
      best = at;
  }
  return best;
}

std::string choice_text(const JobWish& wish) {
  const std::string objective = objective_of(wish);
  std::string text = objective == "cost"   ? "the cheapest"
                     : objective == "time" ? "the soonest"
                                           : "the least product of hours and cost";
  if (wish.deadline_seconds)
    text += fmt::format(" that meets the deadline in {:g} % of the lives", 100 * wish.risk);
  if (wish.budget)
    text += fmt::format("{} within the budget in 95 % of the lives",
                        wish.deadline_seconds ? " and stays" : " that stays");
  return text;
}

NearestOptions nearest_options(const std::vector<JobOption>& options) {
  const auto least = [&](const Interval JobOption::*of) {
    return static_cast<std::size_t>(std::min_element(options.begin(), options.end(),
                                                     [&](const JobOption& a, const JobOption& b) {
                                                       return (a.*of).high < (b.*of).high;
                                                     }) -
                                    options.begin());
  };
  return {least(&JobOption::hours), least(&JobOption::cost)};
}

HoursUnit unit_of_hours(double hours) {
  if (hours < 1.0 / 30) return {"s", 3600};
  return hours < 1 ? HoursUnit{"min", 60} : HoursUnit{"h", 1};
}

std::string time_text(double hours) {
  const auto [unit, factor] = unit_of_hours(hours);
  return fmt::format("{:.3g} {}", factor * hours, unit);
}

std::string unmet_text(const std::vector<JobOption>& options, const JobWish& wish) {
  const std::string kept =
      fmt::format("no plan keeps to {}", !wish.budget             ? "the deadline"
                                         : !wish.deadline_seconds ? "the budget"
                                                                  : "the deadline and the budget");
  const NearestOptions nearest = nearest_options(options);
  const JobOption &soonest = options[nearest.soonest], &cheapest = options[nearest.cheapest];
  if (!std::isfinite(soonest.hours.high)) {
    const JobOption& most = *std::max_element(
        options.begin(), options.end(),
        [](const JobOption& a, const JobOption& b) { return a.ended_part() < b.ended_part(); });
    return fmt::format(
        "{}on no set of nodes do 95 % of the lives end: nodes are lost (class.hazard_scale_hours) "
        "sooner than the job gets on; the most, {:.0f} %, on {}",
        wish.budget || wish.deadline_seconds ? kept + ": " : "", 100 * most.ended_part(),
        most.job.sizes.back().name);
  }
  return fmt::format(
      "{}; the nearest possible, with 95 %: the soonest ends within {} "
      "(cost {:.4g} {}; {}), the cheapest costs {:.4g} {} (ends within {}; {})",
      kept, time_text(soonest.hours.high), soonest.cost.high, soonest.job.currency,
      soonest.job.sizes.back().name, cheapest.cost.high, cheapest.job.currency,
      time_text(cheapest.hours.high), cheapest.job.sizes.back().name);
}

std::string nodes_text(const std::vector<JobPart>& parts, const Cluster& cluster) {
  std::string text;
  for (const JobPart& part : parts)
    text += fmt::format("{}{} x {}", text.empty() ? "" : " + ", part.nodes,
                        cluster.classes[part.node_class].name);
  return text;
}

std::string mesh_text(const Plan& plan) {
  const auto& [p, q, r] = plan.replicas.front().cuboid;
  std::string text = fmt::format("{} x ({} x {} x {})", plan.replicas.size(), p, q, r);
  if (const std::optional<AxisOrder> order = other_order_of(plan))
    text += ", " + order_text(*order);
  return text;
}

}  // namespace t3d
