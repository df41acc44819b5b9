#include "tools/plan/plan_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/commas.hpp"
#include "core/counted.hpp"
#include "forecast/axis_order.hpp"
#include "forecast/simulate/many_lives.hpp"
#include "tools/plan/plan_table.hpp"

namespace t3d {
namespace {

std::string time_interval_text(const Interval& hours) {
  const auto [unit, factor] = unit_of_hours(hours.middle);
  return fmt::format("{} {} ({}-{})", readable(factor * hours.middle), unit,
                     readable(factor * hours.low), readable(factor * hours.high));
}

std::string memory_text(const FoundPlan& found) {
  const double needed = static_cast<double>(found.needed_bytes),
               room = static_cast<double>(found.room_bytes);
  const bool large = std::max(needed, room) >= 10.0 * (1 << 30);
  const double unit = large ? 1 << 30 : 1 << 20;
  const auto text = [&](double bytes) {
    return fmt::format("{:.{}f}", bytes / unit, large ? 1 : 0);
  };
  return fmt::format("{}{} {}", text(needed), found.room_bytes == 0 ? "" : "/" + text(room),
                     large ? "GiB" : "MiB");
}

std::string choices_text(const Plan& plan) {
  std::string text = fmt::format("{}", plan.largest_micro());
  if (plan.recompute == Recompute::block) text += " r";
  return text;
}

PlanRow head_row(const PlanReport& report) {
  PlanRow row{"",     "nodes", "replicas x (p q r)", "micro", "step ms", "tokens/s", "memory",
              "time", "cost"};
  if (report.wish.deadline_seconds) row.emplace_back("in time");
  return row;
}

PlanRow option_row(const PlanReport& report, std::size_t at) {
  const JobOption& one = report.options[at];
  PlanRow row{at == report.chosen ? "*"
              : one.on_front      ? "+"
                                  : "",
              nodes_text(one.found.parts, report.cluster),
              mesh_text(one.found.plan),
              choices_text(one.found.plan),
              milliseconds_text(one.found.seconds()),
              with_commas(report.tokens_per_second(one.found)),
              memory_text(one.found),
              time_interval_text(one.hours),
              readable(one.cost.middle)};
  if (report.wish.deadline_seconds) row.push_back(fmt::format("{:.1f} %", 100 * one.in_time));
  return row;
}

std::string order_line(const FoundPlan& found) {
  if (!found.usual_seconds) return {};
  return folded_line(
      fmt::format(
          "  ranks are numbered along {}, innermost first (d: replicas); in the usual order a step "
          "takes {:.1f} % longer",
          order_text(*order_of(found.plan)), 100 * (*found.usual_seconds / found.seconds() - 1)),
      4);
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
  for (const std::string& note : notes) text += folded_line("note: " + note, 6);
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
      text += folded_line(
          fmt::format("  {:>10} {}{}; nearest: {}", with_commas(static_cast<double>(left.count)),
                      where, left.why, left.nearest),
          13);
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
  for (const std::string& line : basis) text += folded_line(line, 2);
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
  const auto grouped = [](index_t count) { return with_commas(static_cast<double>(count)); };
  text += folded_line(fmt::format("{}, {} candidate{}, {} priced in {:.2f} s{}",
                                  counted(report.searched.size(), "set of nodes", "sets of nodes"),
                                  grouped(candidates), candidates == 1 ? "" : "s", grouped(priced),
                                  report.search_seconds,
                                  complete ? ", the others cannot be better"
                                           : "; not all that might be better were priced"),
                      2);
  text += folded_line(
      fmt::format("{} step{} of {} of {} tokens; cost in {}; time and cost: the middle of all "
                  "lives, and of the time where 90 % of them lie",
                  grouped(report.wish.steps), report.wish.steps == 1 ? "" : "s",
                  counted(report.wish.sequences, "sequence"), report.context,
                  report.options.front().job.currency),
      2);
  text += "\n";
  std::vector<PlanRow> rows{head_row(report)};
  const bool front = report.wish.objective == "pareto";
  std::size_t listed = 0;
  for (std::size_t at = 0; at < report.options.size(); ++at)
    if (at == report.chosen || (listed < top && (report.options[at].on_front || !front))) {
      rows.push_back(option_row(report, at));
      ++listed;
    }
  text += table_text(rows);
  text += folded_line(
      fmt::format("* chosen: {}; + nothing else is both sooner and cheaper; r: recomputes "
                  "activations",
                  choice_text(report.wish)),
      2);
  text += notes_text(report.notes) + "\nwhere the chosen plan's step goes\n";
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
