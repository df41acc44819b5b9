#include "tools/plan/job_options.hpp"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <cmath>

#include "core/commas.hpp"
#include "core/error.hpp"
#include "core/utf8.hpp"
#include "forecast/axis_order.hpp"
#include "tools/plan/planned_job.hpp"

namespace t3d {
namespace {

constexpr double kMostEvents = 1e7;    // of all lives of a set of nodes: seconds
constexpr index_t kMostLives = 10000;  // of each set of nodes

Interval interval_of(const Spread& spread, double unit) {
  return {spread.p5 / unit, spread.p50 / unit, spread.p95 / unit};
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

// A share of n lives is told from all of them where 3 of n do not belong to it.
index_t planned_runs(const JobWish& wish) {
  if (!wish.deadline_seconds || wish.risk >= 1)
    return wish.deadline_seconds ? kMostLives : kPlannedLives;
  const double needed = std::ceil(3 / (1 - wish.risk) * (1 - 1e-9));
  return static_cast<index_t>(std::clamp(needed, double(kPlannedLives), double(kMostLives)));
}

std::vector<JobOutcome> planned_lives(const SimulatedJob& job, index_t runs) {
  LivesRequest request;
  request.runs = runs;
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
    option.job = planned_job(one, searched, wish, cluster);
    const std::vector<JobOutcome> lives = planned_lives(option.job, planned_runs(wish));
    const LivesSummary summary = summary_of(lives);
    option.losses = summary.losses;
    option.checkpoints = summary.checkpoints;
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

void take_budget_unit(JobWish& wish, const std::vector<JobOption>& options) {
  if (!wish.budget || options.empty()) return;
  const std::string& priced = options.front().job.currency;
  if (!wish.budget_unit.empty() && ::strcasecmp(wish.budget_unit.c_str(), priced.c_str()) != 0)
    throw_error(ExitCode::config,
                "--budget is in {}, and the costs are in {}: {} says it by price_per_node_hour and "
                "currency of its classes; --budget {} takes their unit",
                printable(wish.budget_unit, 40), priced, wish.source, readable(*wish.budget, 6));
  wish.budget_unit = priced;
}

/// "the budget of 200 EUR"
std::string budget_text(const JobWish& wish) {
  if (wish.budget_unit.empty()) return "the budget";
  return fmt::format("the budget of {} {}", readable(*wish.budget, 6), wish.budget_unit);
}

std::string choice_text(const JobWish& wish) {
  const std::string objective = objective_of(wish);
  std::string text = objective == "cost"   ? "the cheapest"
                     : objective == "time" ? "the soonest"
                                           : "the least product of hours and cost";
  if (wish.deadline_seconds)
    text += fmt::format(" that meets the deadline in {:g} % of the lives", 100 * wish.risk);
  if (wish.budget)
    text += fmt::format("{} within {} in 95 % of the lives",
                        wish.deadline_seconds ? " and stays" : " that stays", budget_text(wish));
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
  return fmt::format("{} {}", readable(factor * hours), unit);
}

std::string unmet_text(const std::vector<JobOption>& options, const JobWish& wish) {
  const std::string deadline = fmt::format("the deadline in {:g} % of the lives", 100 * wish.risk);
  const std::string kept = fmt::format(
      "no plan keeps to {}", !wish.budget             ? deadline
                             : !wish.deadline_seconds ? budget_text(wish)
                                                      : deadline + " and " + budget_text(wish));
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
      "{}; the nearest possible, in 95 % of the lives: the soonest ends within {} "
      "(cost {} {}; {}), the cheapest costs {} {} (ends within {}; {})",
      kept, time_text(soonest.hours.high), readable(soonest.cost.high, 4), soonest.job.currency,
      soonest.job.sizes.back().name, readable(cheapest.cost.high, 4), cheapest.job.currency,
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
