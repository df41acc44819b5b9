#include "tools/simulate/simulation_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/commas.hpp"
#include "core/utf8.hpp"
#include "record/log/step_record.hpp"

namespace t3d {
namespace {

using ReportJson = nlohmann::ordered_json;

constexpr std::size_t kNameColumns = 28;

/// Of times below a minute a whole second is much; of many years, days are little.
std::string time_text(double seconds) {
  constexpr double kShort = 60, kLong = 1e9, kYear = 365 * 86400;
  if (!std::isfinite(seconds)) return "never";
  if (seconds > kLong) return with_commas(seconds / kYear) + " years";
  return seconds < kShort ? short_time(seconds) : clock_time(seconds);
}

std::string cost_text(double cost) {
  if (!std::isfinite(cost)) return "-";
  return cost < 1e4 ? fmt::format("{:.2f}", cost) : with_commas(cost);
}

std::string row(const char* name, const Spread& spread, std::string (*text)(double)) {
  return fmt::format("{:<16}{:>12}{:>12}{:>12}{:>12}{:>12}\n", name, text(spread.p5),
                     text(spread.p50), text(spread.p90), text(spread.p95), text(spread.mean));
}

std::string head(const SimulationReport& report) {
  const SimulatedJob& job = report.job;
  std::string text = fmt::format(
      "{}: {} samples, {} size{} up to {}\n", printable(job.name.empty() ? "job" : job.name, 60),
      with_commas(job.samples), job.sizes.size(), job.sizes.size() == 1 ? "" : "s",
      printable(job.sizes.back().name, 60));
  if (!job.source.empty()) text += fmt::format("plan            {}\n", printable(job.source, 200));
  text += fmt::format("nodes           {}\n", printable(report.nodes_from, 300));
  for (const std::string& note : report.notes)
    text += fmt::format("note            {}\n", printable(note, 300));
  text += fmt::format("runs            {}, seed {}\n", report.outcomes.size(), report.seed);
  text += fmt::format("without losses  {} at the largest size\n",
                      time_text(report.undisturbed_seconds));
  return text;
}

std::string deadline_text(const SimulationReport& report) {
  if (!report.deadline_seconds) return "";
  const double deadline = *report.deadline_seconds;
  std::string text = fmt::format("deadline {}: met with a probability of {:.1f} %",
                                 time_text(deadline), 100 * *report.own.in_time);
  if (report.undisturbed_seconds > deadline)
    return text + fmt::format("; impossible, as it takes {} without any loss\n",
                              time_text(report.undisturbed_seconds));
  if (*report.own.in_time > 0) return text + "\n";
  double earliest = kNoTime;
  for (const JobOutcome& outcome : report.outcomes)
    if (outcome.finished) earliest = std::min(earliest, outcome.seconds);
  return text + fmt::format("; the earliest run ends after {}\n", time_text(earliest));
}

std::string parts_text(const LivesSummary& summary) {
  std::string text = "where the time goes, % of it\n ";
  for (std::size_t part = 0; part < kLifeParts; ++part)
    text += fmt::format(" {} {:.2f}", Words<LifePart>::all[part], 100 * summary.share[part]);
  text += fmt::format(
      "\nin a run, mean\n  {:.1f} nodes lost, {:.1f} roll-backs, {:.1f} reshapes, {:.1f} restarts, "
      "{:.1f} checkpoints,\n  {:.1f} lives; {:.1f} nodes held; {} samples/s\n",
      summary.losses, summary.roll_backs, summary.reshapes, summary.restarts, summary.checkpoints,
      summary.lives, summary.mean_nodes, readable(summary.samples_per_second, 4));
  return text;
}

std::string policy_line(const ComparedPolicy& compared, index_t runs) {
  const LivesSummary& s = compared.summary;
  std::string name = printable(compared.policy.name, 60);
  if (name.size() > kNameColumns) name += "\n" + std::string(kNameColumns, ' ');
  std::string text =
      fmt::format("{:<{}}{:>8.1f}{:>12}{:>12}{:>10}", name, kNameColumns, 100 * s.goodput,
                  time_text(s.seconds.p50), time_text(s.seconds.p95), cost_text(s.cost.mean));
  if (compared.in_time) text += fmt::format("{:>9.1f}", 100 * *compared.in_time);
  if (s.runs < runs) text += fmt::format("  ({} runs only)", s.runs);
  return text + "\n";
}

ReportJson number_or_null(double value) {
  return std::isfinite(value) ? ReportJson(value) : ReportJson(nullptr);
}

ReportJson spread_json(const Spread& spread) {
  return {{"p5", number_or_null(spread.p5)},
          {"p50", number_or_null(spread.p50)},
          {"p90", number_or_null(spread.p90)},
          {"p95", number_or_null(spread.p95)},
          {"mean", number_or_null(spread.mean)}};
}

ReportJson policy_json(const ComparedPolicy& compared) {
  const LivesSummary& s = compared.summary;
  ReportJson json{{"name", compared.policy.name},
                  {"recovery", word_of(compared.policy.recovery)},
                  {"copies", compared.policy.copies},
                  {"interval_seconds", compared.policy.interval_seconds},
                  {"spares", compared.policy.spares},
                  {"sizing", word_of(compared.policy.sizing)},
                  {"runs", s.runs},
                  {"finished", s.finished},
                  {"seconds", spread_json(s.seconds)},
                  {"cost", spread_json(s.cost)},
                  {"goodput", s.goodput}};
  for (std::size_t part = 0; part < kLifeParts; ++part)
    json["share"][std::string(Words<LifePart>::all[part])] = s.share[part];
  json["samples_per_second"] = s.samples_per_second;
  json["mean_nodes"] = s.mean_nodes;
  json["per_run"] = {{"losses", s.losses},           {"roll_backs", s.roll_backs},
                     {"reshapes", s.reshapes},       {"restarts", s.restarts},
                     {"checkpoints", s.checkpoints}, {"lives", s.lives}};
  json["deadline_probability"] =
      compared.in_time ? ReportJson(*compared.in_time) : ReportJson(nullptr);
  return json;
}

}  // namespace

std::string report_text(const SimulationReport& report) {
  const LivesSummary& own = report.own.summary;
  std::string text = head(report);
  if (own.finished < own.runs)
    text += fmt::format("{} of {} runs do not finish: stopped after {}\n", own.runs - own.finished,
                        own.runs, time_text(longest_seconds(report.job, report.job.policy)));
  text += fmt::format("\n{:<16}{:>12}{:>12}{:>12}{:>12}{:>12}\n", "", "5 %", "median", "90 %",
                      "95 %", "mean");
  text += row("finish", own.seconds, time_text);
  text += row(("cost " + printable(report.job.currency, 10)).c_str(), own.cost, cost_text);
  text += deadline_text(report) + "\n" + parts_text(own);
  if (report.policies.size() < 2) return text;
  text += fmt::format("\n{:<{}}{:>8}{:>12}{:>12}{:>10}{}\n",
                      fmt::format("policy ({} runs each)", report.compared_runs), kNameColumns,
                      "useful %", "median", "95 %", "mean cost",
                      report.deadline_seconds ? "  in time %" : "");
  for (const ComparedPolicy& compared : report.policies)
    text += policy_line(compared, report.compared_runs);
  return text;
}

std::string report_json(const SimulationReport& report) {
  ReportJson json{
      {"name", report.job.name},         {"nodes", report.nodes_from},
      {"notes", report.notes},           {"seed", report.seed},
      {"currency", report.job.currency}, {"undisturbed_seconds", report.undisturbed_seconds}};
  json["deadline_seconds"] =
      report.deadline_seconds ? ReportJson(*report.deadline_seconds) : ReportJson(nullptr);
  json["own"] = policy_json(report.own);
  json["policies"] = ReportJson::array();
  for (const ComparedPolicy& compared : report.policies)
    json["policies"].push_back(policy_json(compared));
  return json.dump(-1, ' ', false, ReportJson::error_handler_t::replace) + "\n";
}

std::string runs_csv(const SimulationReport& report) {
  std::string text = "run,finished,seconds,cost";
  for (const std::string_view part : Words<LifePart>::all) text += fmt::format(",{}_seconds", part);
  text += ",losses,roll_backs,reshapes,restarts,checkpoints,lives\n";
  for (std::size_t run = 0; run < report.outcomes.size(); ++run) {
    const JobOutcome& o = report.outcomes[run];
    text += fmt::format("{},{},{:.3f},{:.4f}", run, o.finished ? 1 : 0, o.seconds, o.cost);
    for (const double part : o.parts) text += fmt::format(",{:.3f}", part);
    text += fmt::format(",{},{},{},{},{},{}\n", o.losses, o.roll_backs, o.reshapes, o.restarts,
                        o.checkpoints, o.lives);
  }
  return text;
}

}  // namespace t3d
