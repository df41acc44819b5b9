#include "tools/calibrate/calibrate_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "core/counted.hpp"
#include "core/robust.hpp"
#include "forecast/cluster/meeting.hpp"
#include "forecast/cluster/sample_spread.hpp"
#include "forecast/cluster/sampled_fit.hpp"
#include "record/log/step_record.hpp"

namespace t3d {
namespace {

struct Errors {
  double median = 0, mean = 0, tenth = 0;  // of 1; the last: of the tenth that is worst, the best
};

Errors errors_of(std::vector<double> errors) {
  if (errors.empty()) return {};
  Errors result;
  result.median = median_of(std::span<const double>(errors));
  for (const double error : errors) result.mean += error / static_cast<double>(errors.size());
  std::sort(errors.begin(), errors.end());
  result.tenth = errors[errors.size() * 9 / 10];
  return result;
}

std::string error_cells(const std::vector<Sample>& samples, const std::vector<double>& left_out) {
  const Errors errors = errors_of(left_out);
  return fmt::format("{:>7} {:>8.1f} % {:>7.1f} % {:>6.1f} % {:>6.1f} %{}\n", samples.size(),
                     100 * spread_of(samples), 100 * errors.median, 100 * errors.mean,
                     100 * errors.tenth, spreads_widely(samples) ? "  unreliable" : "");
}

std::string advice_text(const NodeClass& one, double seconds) {
  const auto wide = std::count_if(one.operators.begin(), one.operators.end(),
                                  [](const auto& table) { return spreads_widely(table.samples); });
  if (wide == 0) return {};
  return fmt::format(
      "{} of {} spread by more than {:.0f} %, measured twice: too few of their calls fitted into "
      "{:g} s; measure longer (--seconds)\n",
      wide, counted(one.operators.size(), "operator"), 100 * kWideSpread, seconds);
}

/// The best rate of all samples: flops or bytes per second.
double best_rate(const OperatorTable& table) {
  double best = 0;
  for (const Sample& sample : table.samples) {
    const std::span<const double> shape =
        std::span(sample.shape).first(form_of(table.kind).columns.size());
    best = std::max(best, term_counts(table.kind, shape)[1] / sample.seconds);
  }
  return best;
}

std::string class_text(const NodeClass& one, double seconds) {
  std::string text = fmt::format(
      "\nclass {}: {} node{} of {} rank{}, {} ({}), {} per rank, launch {:.2f} us, jitter {:.1f} "
      "% of 1 ms, {:.1f} % of 10 ms\n"
      "{:<20} {:<5} {:>10} {:>7} {:>10} {:>9} {:>8} {:>8}\n",
      one.name, one.nodes, one.nodes == 1 ? "" : "s", one.ranks_per_node,
      one.ranks_per_node == 1 ? "" : "s", one.device, one.processor,
      short_bytes(static_cast<double>(one.memory_bytes)), 1e6 * one.launch_seconds,
      100 * one.jitter, 100 * Jitter{one.jitter, one.jitter_exponent}.of(0.01), "operator", "",
      "best G/s", "shapes", "spread", "median", "mean", "worst 10");
  for (const OperatorTable& table : one.operators) {
    const OperatorKind kind = table.kind;
    const std::vector<double> left_out = leave_one_out(
        table.samples, form_of(kind),
        [kind](std::span<const double> shape) { return term_counts(kind, shape); },
        [kind](std::span<const double> shape) { return place_of(kind, shape); });
    text += fmt::format("{:<20} {:<5} {:>10.2f} {}", word_of(kind), word_of(table.format),
                        1e-9 * best_rate(table), error_cells(table.samples, left_out));
  }
  return text + advice_text(one, seconds);
}

std::string level_text(const Level& level) {
  std::string text = fmt::format(
      "\nlevel {}{}: {:.2f} us + {:.4f} ns per byte ({:.2f} GB/s)", level.name,
      level.node_class.empty() ? "" : " of " + level.node_class, 1e6 * level.alpha_seconds,
      1e9 * level.beta_seconds_per_byte, 1e-9 / std::max(level.beta_seconds_per_byte, 1e-18));
  if (level.groups_together > 1)
    text += fmt::format(", {} groups at once {:.4f} ns", level.groups_together,
                        1e9 * level.beta_together_seconds_per_byte);
  text += "\n";
  for (const CollectiveTable& table : level.collectives) {
    const Verb verb = table.verb;
    const std::vector<double> left_out = leave_one_out(
        table.samples, collective_form(),
        [verb](std::span<const double> shape) { return term_counts(verb, shape); },
        place_of_collective);
    text += fmt::format("{:<20} {:<5} {:>10} {}", name_of(verb), "", "",
                        error_cells(table.samples, left_out));
  }
  return text;
}

}  // namespace

std::string calibrate_report(const Cluster& measured, const std::vector<std::string>& notes,
                             double seconds) {
  std::string text =
      "spread: a sample's standard error; median, mean, worst 10: error of an estimate for a "
      "shape\n"
      "that was left out (of the worst tenth the least)\n";
  for (const NodeClass& one : measured.classes) text += class_text(one, seconds);
  for (const Level& level : measured.levels) text += level_text(level);
  if (!measured.storage.folder.empty()) {
    text += fmt::format("\nstorage {}: a small file {:.2f} ms; writers: GB/s written, read",
                        measured.storage.folder, 1e3 * measured.storage.latency_seconds);
    for (std::size_t at = 0; at < measured.storage.writes.size(); ++at)
      text += fmt::format("; {}: {:.2f}, {:.2f}", measured.storage.writes[at].processes,
                          1e-9 * measured.storage.writes[at].bytes_per_second,
                          1e-9 * measured.storage.reads[at].bytes_per_second);
    text += "\n";
  }
  for (const StartTime& start : measured.startup.starts)
    text += fmt::format("\nstart: {:.2f} s until {} could compute\n", start.seconds,
                        counted(start.ranks, "rank"));
  if (!notes.empty()) text += "\nnot measured:\n";
  for (const std::string& note : notes) text += "  " + note + "\n";
  return text + "\n";
}

}  // namespace t3d
