#include "tools/plan/elastic_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/commas.hpp"
#include "core/error.hpp"
#include "tools/plan/noise_of_run.hpp"

namespace t3d {
namespace {

/// Stretches of the training, each of which may have a size of its own.
constexpr index_t kStretches = 48;

void know_noise(const Config& config, const PlanCommand& command, const JobWish& wish,
                ElasticPlan& plan) {
  if (command.noise) {
    const auto& [last, exponent] = *command.noise;
    plan.noise.exponent = exponent;
    plan.noise.scale = last / std::pow(static_cast<double>(wish.steps), exponent);
    plan.noise.sequences = static_cast<double>(wish.sequences);
    plan.noise_source = "as given";
    return;
  }
  if (command.noise_from.empty())
    throw_error(ExitCode::config,
                "--elastic needs to know how the gradient's noise scale grows: --noise-from RUN "
                "takes it from the folder of a run with two replicas or more (a few hundred steps "
                "of this model and data), --noise B,EXPONENT from you: B sequences at the end of "
                "the run, growing with the part of it to the power of EXPONENT");
  const NoiseOfRun run = noise_of_run(command.noise_from, config.model.context);
  plan.noise = run.law;
  plan.noise_source = fmt::format(
      "from {}: {} steps up to step {:.0f}, of {} sequences{}; {}", command.noise_from,
      plan.noise.steps, plan.noise.last, readable(plan.noise.sequences, 4),
      run.context != config.model.context
          ? fmt::format(" of {} tokens (its own have {})", config.model.context, run.context)
          : "",
      plan.noise.spread > 1
          ? fmt::format("they lie around the law by a factor of {:.2f}", plan.noise.spread)
          : "too few for more than one number");
}

/// The input's own, and twice of it as long as that is allowed and pays.
std::vector<index_t> batches_of(const Config& config, const PlanCommand& command, double most_noise,
                                std::string& rule) {
  const index_t own = config.batch.sequences;
  index_t most = own;
  if (command.most_batch > 0) {
    if (command.most_batch < own)
      throw_error(ExitCode::usage, "--most-batch {} is below batch.sequences = {}",
                  command.most_batch, own);
    most = command.most_batch;
    rule = fmt::format("may grow to {} (--most-batch); ", most);
    rule += config.aggregate.method == AggregateMethod::adasum
                ? "adasum keeps optimizer.lr right"
                : "optimizer.lr stays as it is written, though a larger batch likes a larger one";
  } else if (config.aggregate.method == AggregateMethod::adasum) {
    // Beyond, a step brings hardly more.
    constexpr double kUseful = 4;
    most = std::max(own, static_cast<index_t>(kUseful * most_noise));
    rule = "may grow: aggregate.method = \"adasum\" keeps optimizer.lr right";
  } else {
    rule = fmt::format(
        "stays at {}: with aggregate.method = \"{}\" a larger one needs another optimizer.lr "
        "(--most-batch lets it grow all the same; adasum needs none)",
        own, config.aggregate.method);
  }
  constexpr std::size_t kMost = 8;
  std::vector<index_t> batches{own};
  while (batches.size() < kMost && batches.back() <= most / 2)
    batches.push_back(2 * batches.back());
  if (command.most_batch > batches.back() && batches.size() < kMost)
    batches.push_back(command.most_batch);
  return batches;
}

double price_of(const SimulatedJob& job) {
  double price = 0;
  for (const SimulatedClass& one : job.classes)
    price += static_cast<double>(one.nodes) * one.price_per_hour;
  return price;
}

/// What the simulated lives of the same nodes say beside steps.
ElasticSize size_of(const JobOption& lived, const FoundPlan& found, index_t batch, index_t steps) {
  ElasticSize size;
  size.batch = static_cast<double>(batch);
  size.step_seconds = found.seconds();
  size.price_per_hour = price_of(lived.job);
  const double undisturbed = static_cast<double>(steps) * lived.found.seconds() / 3600;
  size.hours_factor = std::max(1.0, lived.hours.middle / undisturbed);
  if (size.price_per_hour > 0)
    size.cost_factor = std::max(1.0, lived.cost.middle / undisturbed / size.price_per_hour);
  size.queue_hours = lived.job.site.queue_median_seconds / 3600;
  size.restart_hours = lived.job.costs.restart_seconds / 3600;
  return size;
}

}  // namespace

ElasticPlan elastic_plan(const Config& config, const PlanCommand& command, const JobWish& wish,
                         const std::vector<JobOption>& options, std::size_t chosen,
                         const SearchBatch& search) {
  ElasticPlan plan;
  plan.currency = options[chosen].job.currency;
  know_noise(config, command, wish, plan);
  const auto steps = static_cast<double>(wish.steps), own = static_cast<double>(wish.sequences);
  const std::vector<Stretch> stretches = stretches_of(
      plan.noise, steps, own, static_cast<int>(std::clamp<index_t>(wish.steps, 1, kStretches)));
  double most_noise = 0;
  for (const Stretch& one : stretches) most_noise = std::max(most_noise, one.noise);
  const JobOption& own_choice = options[chosen];
  const auto add = [&](const JobOption& lived, const FoundPlan& found, index_t batch) {
    if (!std::isfinite(lived.hours.middle)) return;
    plan.sizes.push_back(size_of(lived, found, batch, wish.steps));
    plan.options.push_back({batch, found, lived.job});
  };
  for (const index_t batch : batches_of(config, command, most_noise, plan.batch_rule)) {
    std::vector<NodesSearched> searched;
    if (batch != wish.sequences) searched = search(batch);
    for (const JobOption& lived : options) {
      if (lived.found.parts.size() > 1) continue;
      if (batch == wish.sequences) add(lived, lived.found, batch);
      for (const NodesSearched& one : searched)
        if (one.parts == lived.found.parts && !one.plans.empty())
          add(lived, one.plans.front(), batch);
    }
  }
  if (plan.sizes.empty())
    throw_error(ExitCode::config, "--elastic looks at nodes of one class: no plan fits on them");
  plan.planned_option = {wish.sequences, own_choice.found, own_choice.job};
  plan.planned = fixed_schedule(
      stretches, {size_of(own_choice, own_choice.found, wish.sequences, wish.steps)}, 0);
  const std::string objective = objective_of(wish);
  if (objective == "pareto")
    throw_error(ExitCode::usage,
                "--elastic needs --objective time or cost: a schedule is one plan");
  if (!command.from.empty())
    throw_error(ExitCode::usage, "--elastic is of the whole run: leave out --from");
  const bool by_cost = objective == "cost";
  ElasticLimits limits;
  // Limits hold in most lives, and what is compared with them are middles.
  if (wish.budget) limits.cost = *wish.budget * own_choice.cost.middle / own_choice.cost.high;
  if (wish.deadline_seconds)
    limits.hours = std::max(  // the plan's own choice keeps to it, with the risk that is asked for
        own_choice.hours.middle,
        *wish.deadline_seconds / 3600 * own_choice.hours.middle / own_choice.hours.high);
  if (by_cost && !wish.deadline_seconds) limits.hours = plan.planned.hours;
  if (!by_cost && !wish.budget) limits.cost = plan.planned.cost;
  plan.fixed = best_fixed(stretches, plan.sizes, limits, by_cost);
  plan.schedule = best_schedule(stretches, plan.sizes, limits, by_cost);
  if (plan.schedule.phases.empty())
    throw_error(ExitCode::config,
                "no schedule of nodes of one class keeps to {} h and {} {}; mixed classes "
                "would: plan without --elastic",
                readable(limits.hours, 4), readable(limits.cost, 4), plan.currency);
  return plan;
}

std::vector<PhaseSteps> whole_steps(const ElasticPlan& plan) {
  std::vector<PhaseSteps> phases;
  double all = 0;
  for (const ElasticPhase& phase : plan.schedule.phases) {
    const index_t first = phases.empty() ? 0 : phases.back().last;
    all += phase.steps;
    phases.push_back(
        {phase.size, first, std::max(first + 1, static_cast<index_t>(std::llround(all)))});
  }
  return phases;
}

}  // namespace t3d
