#include "app/commands/plan/plan_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/counted.hpp"
#include "hetero/forecast/axis_order.hpp"
#include "hetero/simulate/many_lives.hpp"

namespace t3d {
namespace {

std::string interval_text(const Interval& one) {
  return fmt::format("{:.4g} ({:.4g}-{:.4g})", one.middle, one.low, one.high);
}

std::string time_interval_text(const Interval& hours) {
  const auto [unit, factor] = unit_of_hours(hours.middle);
  return fmt::format("{:.4g} {} ({:.4g}-{:.4g})", factor * hours.middle, unit, factor * hours.low,
                     factor * hours.high);
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

/// Of the column of meshes.
std::size_t mesh_width(const PlanReport& report) {
  std::size_t width = 20;
  for (const JobOption& one : report.options)
    width = std::max(width, mesh_text(one.found.plan).size());
  return width;
}

std::string option_line(const PlanReport& report, std::size_t at, std::size_t width) {
  const JobOption& one = report.options[at];
  return fmt::format(
      "{:1} {:<24} {:<{}} {:>14} {:>10.2f} {:>10.0f}  {:<20} {:<24} {:<24}{}\n",
      at == report.chosen ? "*"
      : one.on_front      ? "+"
                          : "",
      nodes_text(one.found.parts, report.cluster), mesh_text(one.found.plan), width,
      choices_text(one.found.plan), 1e3 * one.found.seconds(), report.tokens_per_second(one.found),
      memory_text(one.found), time_interval_text(one.hours), interval_text(one.cost),
      report.wish.deadline_seconds ? fmt::format(" {:>5.1f} %", 100 * one.in_time) : std::string());
}

std::string order_line(const FoundPlan& found) {
  if (!found.usual_seconds) return {};
  return fmt::format(
      "  ranks are numbered along {}, innermost first (d: replicas); in the usual order a step "
      "takes {:.1f} % longer\n",
      order_text(*order_of(found.plan)), 100 * (*found.usual_seconds / found.seconds() - 1));
}

/// What one tenth more of something does to the chosen option.
struct Sensitivity {
  std::string what;
  double hours = 0, cost = 0;  // relative
};
std::vector<Sensitivity> sensitivities(const PlanReport& report) {
  const JobOption& one = report.options[*report.chosen];
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
  const bool priced =
      std::any_of(one.found.parts.begin(), one.found.parts.end(), [&](const JobPart& part) {
        return report.cluster.classes[part.node_class].price_per_node_hour > 0;
      });
  if (priced) all.push_back({"prices 10 % higher", 0, 0.1});
  SimulatedJob job = one.job;
  bool lost = false;
  for (SimulatedClass& kind : job.classes) {
    if (kind.hazard.never() || kind.hazard.shape() <= 0) continue;
    kind.hazard = Hazard::weibull(kind.hazard.shape(), kind.hazard.scale_hours() / 1.1);
    lost = true;
  }
  if (lost) {
    const LivesSummary more = summary_of(planned_lives(job));
    all.push_back({"nodes lost 10 % sooner", more.seconds.p50 / 3600 / one.hours.middle - 1,
                   more.cost.p50 / one.cost.middle - 1});
  }
  return all;
}

std::string notes_text(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += "note: " + note + "\n";
  return text;
}

/// Of the chosen nodes, and of those on which nothing fits.
std::string left_out_text(const PlanReport& report) {
  std::string text;
  for (const NodesSearched& one : report.searched) {
    const bool chosen = one.parts == report.options[*report.chosen].found.parts;
    if (!chosen && !one.plans.empty()) continue;
    const std::string where =
        chosen ? "" : fmt::format("nothing fits on {}: ", nodes_text(one.parts, report.cluster));
    for (const LeftOut& left : one.left_out)
      text += fmt::format("  {:>6} {}{}; nearest: {}\n", left.count, where, left.why, left.nearest);
  }
  return text.empty() ? text : "\nwhat was left out\n" + text;
}

}  // namespace

double PlanReport::tokens_per_second(const FoundPlan& found) const {
  return static_cast<double>(wish.sequences * context) / found.seconds();
}

std::vector<std::pair<std::string, double>> terms_of(const ForecastTerms& terms) {
  std::vector<std::pair<std::string, double>> all;
  for (std::size_t kind = 0; kind < kOperatorKinds; ++kind)
    all.emplace_back(Words<OperatorKind>::all[kind], terms.operators[kind]);
  all.emplace_back("starting operators", terms.host);
  all.emplace_back("waiting at products", terms.meeting);
  for (std::size_t group = 0; group < ForecastTerms::kGroups; ++group) {
    const std::string_view axis = name_of(static_cast<Group>(group));
    const double exposed = terms.exposed(static_cast<Group>(group));
    all.emplace_back(fmt::format("messages over {} inside a node", axis),
                     exposed * terms.inside[group]);
    all.emplace_back(fmt::format("messages over {} between nodes", axis),
                     exposed * terms.between[group]);
  }
  std::erase_if(all, [](const auto& term) { return term.second <= 0; });
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  return all;
}

std::string basis_text(const std::vector<std::string>& basis) {
  std::string text;
  for (const std::string& line : basis) text += line + "\n";
  return basis.empty() ? text : text + "\n";
}

std::string plan_text(const PlanReport& report, std::size_t top) {
  index_t candidates = 0, priced = 0;
  bool complete = true;
  for (const NodesSearched& one : report.searched) {
    candidates += one.candidates;
    priced += one.priced;
    complete = complete && one.complete;
  }
  std::string text = basis_text(report.basis);
  text += fmt::format(
      "{}, {}, {} priced in {:.2f} s{}\n"
      "{} of {} of {} tokens; time and cost ({}): half of all lives, and 90 %\n\n",
      counted(report.searched.size(), "set of nodes", "sets of nodes"),
      counted(candidates, "candidate"), priced, report.search_seconds,
      complete ? ", the others cannot be better" : "; not all that might be better were priced",
      counted(report.wish.steps, "step"), counted(report.wish.sequences, "sequence"),
      report.context, report.options.front().job.currency);
  const std::size_t width = mesh_width(report);
  text += fmt::format("  {:<24} {:<{}} {:>14} {:>10} {:>10}  {:<20} {:<24} {:<24}{}\n", "nodes",
                      "replicas x (p q r)", width, "micro-batch", "step ms", "tokens/s", "memory",
                      "time", "cost", report.wish.deadline_seconds ? " in time" : "");
  const bool front = report.wish.objective == "pareto";
  std::size_t listed = 0;
  for (std::size_t at = 0; at < report.options.size(); ++at)
    if (at == report.chosen || (listed < top && (report.options[at].on_front || !front))) {
      text += option_line(report, at, width);
      ++listed;
    }
  text += fmt::format(
      "* chosen: {}; + nothing else is both sooner and cheaper\n{}"
      "\nwhere the chosen plan's step goes\n",
      choice_text(report.wish), notes_text(report.notes));
  const JobOption& chosen = report.options[*report.chosen];
  text += order_line(chosen.found);
  for (const auto& [name, seconds] : terms_of(chosen.found.forecast.terms))
    text += fmt::format("  {:<40} {:>9.3f} ms {:>6.1f} %\n", name, 1e3 * seconds,
                        100 * seconds / chosen.found.seconds());
  if (chosen.found.forecast.imbalance > 1.005)
    text += fmt::format("  the slowest replica computes {:.3f} times as long as the mean\n",
                        chosen.found.forecast.imbalance);
  text += left_out_text(report);
  text += "\nwhat would change it\n";
  for (const Sensitivity& one : sensitivities(report))
    text += fmt::format("  {:<40} time {:+.1f} %, cost {:+.1f} %\n", one.what, 100 * one.hours,
                        100 * one.cost);
  return text;
}

}  // namespace t3d
