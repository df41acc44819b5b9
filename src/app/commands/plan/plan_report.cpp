#include "app/commands/plan/plan_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hetero/simulate/many_lives.hpp"

namespace t3d {
namespace {

std::string interval_text(const Interval& one) {
  return fmt::format("{:.4g} ({:.4g}-{:.4g})", one.middle, one.low, one.high);
}

std::string memory_text(const FoundPlan& found) {
  const double needed = static_cast<double>(found.needed_bytes) / (1 << 20);
  if (found.room_bytes == 0) return fmt::format("{:.0f} MiB", needed);
  return fmt::format("{:.0f} of {:.0f} MiB", needed,
                     static_cast<double>(found.room_bytes) / (1 << 20));
}

std::string choices_text(const Plan& plan) {
  std::string text = fmt::format("{}", plan.largest_micro());
  if (plan.recompute == Recompute::block) text += " recompute";
  return text;
}

double tokens_per_second(const PlanReport& report, const FoundPlan& found) {
  return static_cast<double>(report.wish.sequences * report.context) / found.seconds();
}

std::string option_line(const PlanReport& report, std::size_t at) {
  const JobOption& one = report.options[at];
  return fmt::format(
      "{:1} {:<24} {:<20} {:>14} {:>10.2f} {:>10.0f}  {:<20} {:<24} {:<24}{}\n",
      at == report.chosen ? "*"
      : one.on_front      ? "+"
                          : "",
      nodes_text(one.found.parts, report.cluster), mesh_text(one.found.plan),
      choices_text(one.found.plan), 1e3 * one.found.seconds(), tokens_per_second(report, one.found),
      memory_text(one.found), interval_text(one.hours), interval_text(one.cost),
      report.wish.deadline_seconds ? fmt::format(" {:>5.1f} %", 100 * one.in_time) : std::string());
}

/// Terms of a forecast that count, largest first.
std::vector<std::pair<std::string, double>> terms_of(const ForecastTerms& terms) {
  std::vector<std::pair<std::string, double>> all;
  for (std::size_t kind = 0; kind < kOperatorKinds; ++kind)
    all.emplace_back(Words<OperatorKind>::all[kind], terms.operators[kind]);
  all.emplace_back("starting operators", terms.host);
  for (std::size_t group = 0; group < ForecastTerms::kGroups; ++group) {
    const std::string_view axis = name_of(static_cast<Group>(group));
    all.emplace_back(fmt::format("messages over {} inside a node", axis), terms.inside[group]);
    all.emplace_back(fmt::format("messages over {} between nodes", axis), terms.between[group]);
  }
  std::erase_if(all, [](const auto& term) { return term.second <= 0; });
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  return all;
}

/// What one tenth more of something does to the chosen option.
struct Sensitivity {
  std::string what;
  double hours = 0, cost = 0;  // relative
};
std::vector<Sensitivity> sensitivities(const PlanReport& report) {
  const JobOption& one = report.options[report.chosen];
  const double base = one.found.seconds();
  const auto step = [&](const ForecastFactors& factors) {
    return one.found.forecast.terms.sum(factors) / base - 1;
  };
  std::vector<Sensitivity> all;
  const auto of_step = [&](const std::string& what, double change) {
    all.push_back({what, change, change});
  };
  of_step("operators 10 % faster", step({.compute = 1 / 1.1}));
  of_step("messages inside a node 10 % faster", step({.inside = 1 / 1.1}));
  of_step("messages between nodes 10 % faster", step({.between = 1 / 1.1}));
  all.push_back({"prices 10 % higher", 0, 0.1});
  SimulatedJob job = one.job;
  bool lost = false;
  for (SimulatedClass& kind : job.classes) {
    if (kind.hazard.never() || kind.hazard.shape() <= 0) continue;
    kind.hazard = Hazard::weibull(kind.hazard.shape(), kind.hazard.scale_hours() / 1.1);
    lost = true;
  }
  if (lost) {
    const LivesSummary more = summary_of(simulate_lives(job, job.policy, {400, 1, nullptr}));
    all.push_back({"nodes lost 10 % sooner", more.seconds.p50 / 3600 / one.hours.middle - 1,
                   more.cost.p50 / one.cost.middle - 1});
  }
  return all;
}

}  // namespace

std::string plan_text(const PlanReport& report, std::size_t top) {
  index_t candidates = 0, priced = 0;
  bool complete = true;
  for (const NodesSearched& one : report.searched) {
    candidates += one.candidates;
    priced += one.priced;
    complete = complete && one.complete;
  }
  std::string text = fmt::format(
      "{} sets of nodes, {} candidates, {} priced in {:.2f} s{}\n"
      "{} steps of {} sequences of {} tokens; hours and cost ({}): half of all lives, and 90 %\n\n",
      report.searched.size(), candidates, priced, report.search_seconds,
      complete ? ", the others cannot be better" : "; not all that might be better were priced",
      report.wish.steps, report.wish.sequences, report.context,
      report.options.front().job.currency);
  text += fmt::format("  {:<24} {:<20} {:>14} {:>10} {:>10}  {:<20} {:<24} {:<24}{}\n", "nodes",
                      "replicas x (p q r)", "micro-batch", "step ms", "tokens/s", "memory", "hours",
                      "cost", report.wish.deadline_seconds ? " in time" : "");
  for (std::size_t at = 0; at < report.options.size(); ++at)
    if (at < top || at == report.chosen) text += option_line(report, at);
  text +=
      "* chosen, + nothing else is both sooner and cheaper\n\nwhere the chosen plan's step goes\n";
  const JobOption& chosen = report.options[report.chosen];
  for (const auto& [name, seconds] : terms_of(chosen.found.forecast.terms))
    text += fmt::format("  {:<40} {:>9.3f} ms {:>6.1f} %\n", name, 1e3 * seconds,
                        100 * seconds / chosen.found.seconds());
  if (chosen.found.forecast.imbalance > 1.005)
    text += fmt::format("  the slowest replica computes {:.3f} times as long as the mean\n",
                        chosen.found.forecast.imbalance);
  text += "\nwhat was left out\n";
  for (const NodesSearched& one : report.searched)
    if (one.parts == chosen.found.parts)
      for (const LeftOut& left : one.left_out)
        text += fmt::format("  {:>6} {}; nearest: {}\n", left.count, left.why, left.nearest);
  text += "\nwhat would change it\n";
  for (const Sensitivity& one : sensitivities(report))
    text += fmt::format("  {:<40} hours {:+.1f} %, cost {:+.1f} %\n", one.what, 100 * one.hours,
                        100 * one.cost);
  return text;
}

std::string plan_json(const PlanReport& report) {
  const auto interval = [](const Interval& one) {
    return nlohmann::ordered_json{one.low, one.middle, one.high};
  };
  nlohmann::ordered_json json;
  json["chosen"] = report.chosen;
  json["steps"] = report.wish.steps;
  for (const JobOption& one : report.options) {
    nlohmann::ordered_json entry;
    for (const JobPart& part : one.found.parts)
      entry["nodes"][report.cluster.classes[part.node_class].name] = part.nodes;
    entry["replicas"] = one.found.plan.replicas.size();
    entry["cuboid"] = one.found.plan.replicas.front().cuboid;
    entry["micro"] = one.found.plan.largest_micro();
    entry["recompute"] = one.found.plan.recompute == Recompute::block;
    entry["step_seconds"] = one.found.seconds();
    entry["tokens_per_second"] = tokens_per_second(report, one.found);
    entry["needed_bytes"] = one.found.needed_bytes;
    entry["room_bytes"] = one.found.room_bytes;
    entry["hours"] = interval(one.hours);
    entry["cost"] = interval(one.cost);
    entry["currency"] = one.job.currency;
    if (report.wish.deadline_seconds) entry["in_time"] = one.in_time;
    entry["front"] = one.on_front;
    for (const auto& [name, seconds] : terms_of(one.found.forecast.terms))
      entry["terms"][name] = seconds;
    json["options"].push_back(entry);
  }
  return json.dump(1) + "\n";
}

std::string plan_csv(const PlanReport& report) {
  std::string text =
      "nodes,replicas,p,q,r,micro,recompute,step_seconds,tokens_per_second,needed_mib,hours_p5,"
      "hours_p50,hours_p95,cost_p5,cost_p50,cost_p95,front\n";
  for (const JobOption& one : report.options) {
    const auto& [p, q, r] = one.found.plan.replicas.front().cuboid;
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
        nodes_text(one.found.parts, report.cluster), one.found.plan.replicas.size(), p, q, r,
        one.found.plan.largest_micro(), one.found.plan.recompute == Recompute::block ? 1 : 0,
        one.found.seconds(), tokens_per_second(report, one.found),
        static_cast<double>(one.found.needed_bytes) / (1 << 20), one.hours.low, one.hours.middle,
        one.hours.high, one.cost.low, one.cost.middle, one.cost.high, one.on_front ? 1 : 0);
  }
  return text;
}

}  // namespace t3d
