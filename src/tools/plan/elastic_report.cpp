// What `transformer3d plan --elastic` says.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/commas.hpp"
#include "tools/plan/elastic_plan.hpp"
#include "tools/plan/plan_table.hpp"

namespace t3d {
namespace {

std::string size_text(const ElasticOption& option, const Cluster& cluster) {
  return fmt::format("{}, {}, batch {}", nodes_text(option.found.parts, cluster),
                     mesh_text(option.found.plan), option.batch);
}

PlanRow phase_row(const ElasticPlan& plan, std::size_t at, const PhaseSteps& steps,
                  const Cluster& cluster) {
  const ElasticPhase& phase = plan.schedule.phases[at];
  const ElasticOption& option = plan.options[phase.size];
  return {std::to_string(at + 1),
          nodes_text(option.found.parts, cluster),
          fmt::format("{}-{}", steps.first + 1, steps.last),
          mesh_text(option.found.plan),
          std::to_string(option.batch),
          std::to_string(option.found.plan.largest_micro()),
          milliseconds_text(option.found.seconds()),
          fmt::format("{}-{}", readable(phase.first_noise), readable(phase.last_noise)),
          fmt::format("{:.0f} %", 100 * phase.progress / phase.steps),
          time_text(phase.hours),
          readable(phase.cost, 4)};
}

/// All bring the same progress, so that work per cost is the inverse of cost.
std::string sum_line(const ElasticPlan& plan, const std::string& name,
                     const ElasticSchedule& schedule, const std::string& size) {
  return fmt::format("  {:<21} {:>9} {:>11} {:>11} {:>13} {:>13}\n{}", name,
                     time_text(schedule.hours), readable(schedule.cost, 4),
                     with_commas(schedule.steps), readable(schedule.sequences, 4),
                     fmt::format("{:.3f}", plan.planned.cost / schedule.cost),
                     size.empty() ? "" : folded_line("    " + size, 6));
}

nlohmann::ordered_json sums_json(const ElasticSchedule& schedule) {
  return {{"hours", schedule.hours},
          {"cost", schedule.cost},
          {"steps", schedule.steps},
          {"sequences", schedule.sequences}};
}

nlohmann::ordered_json option_json(const ElasticOption& option, const Cluster& cluster) {
  nlohmann::ordered_json json;
  for (const JobPart& part : option.found.parts)
    json["nodes"][cluster.classes[part.node_class].name] = part.nodes;
  json["replicas"] = option.found.plan.replicas.size();
  json["cuboid"] = option.found.plan.replicas.front().cuboid;
  json["batch"] = option.batch;
  json["micro"] = option.found.plan.largest_micro();
  json["step_seconds"] = option.found.seconds();
  return json;
}

}  // namespace

std::string elastic_text(const ElasticPlan& plan, const JobWish& wish, const Cluster& cluster) {
  const auto steps = static_cast<double>(wish.steps);
  const std::vector<PhaseSteps> phases = whole_steps(plan);
  std::string text = folded_line(
      fmt::format("noise scale {} sequences at step {:.0f}, {} at step {:.0f} (to the power of "
                  "{:.2f}; {})",
                  readable(plan.noise.at(steps / 100)), std::max(1.0, steps / 100),
                  readable(plan.noise.at(steps)), steps, plan.noise.exponent, plan.noise_source),
      2);
  text += folded_line("the batch " + plan.batch_rule, 2) + "\n";
  std::vector<PlanRow> rows{{"", "nodes", "steps", "replicas x (p q r)", "batch", "micro",
                             "step ms", "noise scale", "useful", "time", "cost"}};
  for (std::size_t at = 0; at < phases.size(); ++at)
    rows.push_back(phase_row(plan, at, phases[at], cluster));
  text += table_text(rows);
  text += fmt::format("\nto the same loss\n  {:<21} {:>9} {:>11} {:>11} {:>13} {:>13}\n", "",
                      "time", plan.currency, "steps", "sequences", "work per cost");
  text += sum_line(plan, "this schedule", plan.schedule, "");
  text +=
      sum_line(plan, "without --elastic", plan.planned, size_text(plan.planned_option, cluster));
  text += plan.fixed.phases.empty()
              ? std::string("  no one size keeps to the limits\n")
              : sum_line(plan, "the best of one size", plan.fixed,
                         size_text(plan.options[plan.fixed.phases.front().size], cluster));
  if (phases.size() == 1)
    text += "\none size is the best throughout: no other pays at any part of the run\n";
  text += "\n" + folded_line(
                     "useful: what a step brings of one with an unlimited batch. Hours and "
                     "cost are middles, by the law of McCandlish et al. 2018 (steps to a "
                     "loss grow as 1 + noise scale / batch) and the cluster's rates: "
                     "modelled.",
                     2);
  return text;
}

std::string elastic_json(const ElasticPlan& plan, const JobWish& wish, const Cluster& cluster) {
  nlohmann::ordered_json json;
  json["noise"] = {{"at_end", plan.noise.at(static_cast<double>(wish.steps))},
                   {"exponent", plan.noise.exponent},
                   {"measured_steps", plan.noise.steps},
                   {"spread", plan.noise.spread},
                   {"source", plan.noise_source}};
  json["batch_rule"] = plan.batch_rule;
  json["currency"] = plan.currency;
  const std::vector<PhaseSteps> phases = whole_steps(plan);
  for (std::size_t at = 0; at < phases.size(); ++at) {
    const ElasticPhase& phase = plan.schedule.phases[at];
    nlohmann::ordered_json entry = option_json(plan.options[phase.size], cluster);
    entry["first_step"] = phases[at].first + 1;
    entry["last_step"] = phases[at].last;
    entry["noise_scale"] = {phase.first_noise, phase.last_noise};
    entry["useful"] = phase.progress / phase.steps;
    entry["hours"] = phase.hours;
    entry["cost"] = phase.cost;
    json["phases"].push_back(entry);
  }
  json["schedule"] = sums_json(plan.schedule);
  json["without_elastic"] = sums_json(plan.planned);
  json["without_elastic"]["size"] = option_json(plan.planned_option, cluster);
  json["one_size"] = nullptr;  // where none keeps to the limits
  if (!plan.fixed.phases.empty()) {
    json["one_size"] = sums_json(plan.fixed);
    json["one_size"]["size"] = option_json(plan.options[plan.fixed.phases.front().size], cluster);
  }
  json["work_per_cost"] = plan.planned.cost / plan.schedule.cost;
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace t3d
