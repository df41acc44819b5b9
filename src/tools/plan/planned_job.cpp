#include "tools/plan/planned_job.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "forecast/simulate/many_lives.hpp"

namespace t3d {
namespace {

constexpr double kStepSpread = 0.03;  // of one step's time, from run to run on shared nodes

bool measured(const std::vector<JobPart>& parts, const Cluster& cluster) {
  return std::all_of(parts.begin(), parts.end(), [&](const JobPart& part) {
    return cluster.classes[part.node_class].calibration.state == Calibrated::measured;
  });
}

/// Some of the parts may send over it.
bool serves(const Level& level, const std::vector<JobPart>& parts, const Cluster& cluster) {
  return level.node_class.empty() ||
         std::any_of(parts.begin(), parts.end(), [&](const JobPart& part) {
           return cluster.classes[part.node_class].name == level.node_class;
         });
}

}  // namespace

bool rests_on_measurements(const FoundPlan& found, const Cluster& cluster) {
  const bool network = found.forecast.terms.messages_between() > 0;
  return measured(found.parts, cluster) &&
         std::all_of(cluster.levels.begin(), cluster.levels.end(), [&](const Level& level) {
           return level.nodes == 1 || !network || !serves(level, found.parts, cluster) ||
                  level.calibration.state == Calibrated::measured;
         });
}

namespace {

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
  if (!wish.checkpoint_asynchronous)
    costs.checkpoint_stall_seconds = costs.checkpoint_write_seconds;
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

/// Seconds, as the input's keys say it.
double written_interval(const JobWish& wish, double step_seconds) {
  constexpr double kShortest = 1, kNever = 1e9;  // that a job plan may say
  double interval = 60 * wish.checkpoint_minutes;
  const double steps = static_cast<double>(wish.checkpoint_steps) * step_seconds;
  if (steps > 0) interval = interval > 0 ? std::min(interval, steps) : steps;
  return interval > 0 ? std::clamp(interval, kShortest, kNever) : kNever;
}

/// Young's, for the roll-backs that some lives with the input's own interval have. Without any that
/// one stays. Not so often that most of the time a checkpoint is being written.
double best_minutes(const SimulatedJob& job, double own_minutes) {
  constexpr double kLeastSeconds = 60;
  LivesRequest request;
  request.runs = 40;
  request.most_events = 1e6;
  request.may_end_early = true;
  double roll_backs = 0, hours = 0;
  for (const JobOutcome& life : simulate_lives(job, job.policy, request)) {
    roll_backs += static_cast<double>(life.roll_backs);
    hours += (life.seconds - life.part(LifePart::queue) - life.part(LifePart::waiting)) / 3600;
  }
  if (roll_backs == 0) return own_minutes;
  const double least = std::max(kLeastSeconds, 2 * job.costs.checkpoint_write_seconds);
  const double minutes =
      best_interval(job.costs.checkpoint_stall_seconds, roll_backs / hours, least) / 60;
  // Two digits are as good, and are what people read.
  const double unit = std::pow(10, std::floor(std::log10(minutes)) - 1);
  return std::round(minutes / unit) * unit;
}

}  // namespace

SimulatedJob planned_job(const NodesSearched& own, const std::vector<NodesSearched>& all,
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
  const bool known = rests_on_measurements(best, cluster);
  job.step_error = known ? kMeasuredError : 0;
  job.step_slower = known ? 0 : kSheetSlower;
  job.costs = costs_of(best, wish, cluster);
  job.site = site_of(best, cluster);
  job.policy.interval_seconds = written_interval(wish, best.seconds());
  if (wish.checkpoint_free) {
    JobWish chosen = wish;
    chosen.checkpoint_minutes = best_minutes(job, wish.checkpoint_minutes);
    job.policy.interval_seconds = written_interval(chosen, best.seconds());
  }
  return job;
}

}  // namespace t3d
