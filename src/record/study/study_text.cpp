#include "record/study/study_text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "io/csv_cell.hpp"
#include "record/log/step_record.hpp"

namespace t3d {
namespace {

/// One column of CSV and one key of JSON.
struct Figure {
  const char* name;
  double value;
};

std::vector<Figure> figures_of(const PointFigures& point) {
  return {
      {"step_seconds", point.seconds.middle},    {"step_seconds_least", point.seconds.low},
      {"step_seconds_most", point.seconds.high}, {"tokens_per_second", point.rate.middle},
      {"speed_up", point.speed_up.middle},       {"speed_up_least", point.speed_up.low},
      {"speed_up_most", point.speed_up.high},    {"efficiency", point.efficiency.middle},
      {"comm_fraction", point.comm_fraction},    {"imbalance", point.imbalance},
      {"counted_bytes", point.counted_bytes},    {"predicted_bytes", point.predicted_bytes},
      {"mfu_of_measured_rate", point.mfu},       {"mfu_of_vendor_peak", point.mfu_of_peak},
      {"tensor_bytes", point.tensor_bytes},      {"resident_bytes", point.resident_bytes},
      {"joules_per_step", point.joules},         {"planned_step_seconds", point.predicted_seconds}};
}

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.9g}", value) : "";
}

std::string percent(double fraction, const char* none = "-") {
  return std::isfinite(fraction) ? fmt::format("{:.1f}", 100 * fraction) : none;
}

std::string factor(double value, const char* none = "-") {
  return std::isfinite(value) ? fmt::format("{:.2f}", value) : none;
}

std::string bytes_cell(double bytes) { return std::isfinite(bytes) ? short_bytes(bytes) : "-"; }

std::string milliseconds(const RunSpread& seconds) {
  if (!std::isfinite(seconds.middle)) return "-";
  return fmt::format("{:.4g} ({:.4g} to {:.4g})", 1e3 * seconds.middle, 1e3 * seconds.low,
                     1e3 * seconds.high);
}

std::string kind_of(const StudyFigures& study) { return study.weak ? "weak" : "strong"; }

}  // namespace

std::string study_remarks(const StudyFigures& study) {
  std::string text = fmt::format(
      "{} scaling of {}; {}; program {}.\nStep: median over a run's steps after the warm-up, "
      "then median (least to largest) over the repeats. ",
      study.weak ? "Weak" : "Strong", study.title, study.machine, study.program);
  if (study.base) {
    const index_t ranks = study.points[*study.base].ranks;
    text += fmt::format(
        "Speed-up: tokens per second / those on {} rank{}{}; efficiency: speed-up / ranks.\n",
        ranks, ranks == 1 ? "" : "s", ranks == 1 ? "" : fmt::format(", times {}", ranks));
  }
  text +=
      "mfu: flops of the model (causal attention) / matmul rate that the same ranks reached "
      "together at the start; peak: / dense rate of the data sheets.\n"
      "Waiting: part of the step in which rank 0 waited for others; imbalance: own time of the "
      "slowest rank / mean - 1. Bytes: all ranks, a step.\n";
  for (const std::string& reason : study.no_roofs) text += fmt::format("no roofline: {}\n", reason);
  for (const std::string& warning : study.warnings) text += fmt::format("warning: {}\n", warning);
  return text;
}

std::string study_table(const StudyFigures& study) {
  std::string text = fmt::format(
      "{:>6}  {:<14} {:>3}  {:>27} {:>8} {:>7} {:>7} {:>6} {:>10} {:>10} {:>6} {:>6} {:>10}  {}\n",
      "ranks", "mesh", "n", "step ms", "speed-up", "eff. %", "wait %", "imb. %", "sent",
      "predicted", "mfu %", "peak %", "memory", "");
  for (const PointFigures& p : study.points) {
    text += fmt::format(
        "{:>6}  {:<14} {:>3}  {:>27} {:>8} {:>7} {:>7} {:>6} {:>10} {:>10} {:>6} {:>6} {:>10}  "
        "{}\n",
        p.ranks, p.shape.empty() ? p.name : p.shape, p.repeats, milliseconds(p.seconds),
        factor(p.speed_up.middle), percent(p.efficiency.middle), percent(p.comm_fraction),
        percent(p.imbalance), bytes_cell(p.counted_bytes), bytes_cell(p.predicted_bytes),
        percent(p.mfu), percent(p.mfu_of_peak), bytes_cell(p.resident_bytes), p.marks());
    if (std::isfinite(p.predicted_seconds))
      text += fmt::format("{:>25}  {:>18.4g} planned (hetero.cluster), measured is {:+.1f} %\n", "",
                          1e3 * p.predicted_seconds,
                          100 * (p.seconds.middle / p.predicted_seconds - 1));
    if (std::isfinite(p.joules)) text += fmt::format("{:>25}  {:.4g} J a step\n", "", p.joules);
  }
  for (const PointFigures& p : study.points)
    for (const std::string& hole : p.holes)
      text += hole + "; medians and warm-up are of the steps that are there\n";
  for (const PointFigures& p : study.points)
    if (!p.why_no_energy.empty())
      return text + fmt::format("no energy: {}\n", p.why_no_energy) + study_remarks(study);
  return text + study_remarks(study);
}

std::string study_csv(const StudyFigures& study) {
  std::string text = "scaling,ranks,nodes,mesh,sequences,repeats,wanted_repeats";
  for (const Figure& figure : figures_of({})) text += fmt::format(",{}", figure.name);
  text += ",marks\r\n";
  for (const PointFigures& point : study.points) {
    text += fmt::format("{},{},{},{},{},{},{}", kind_of(study), point.ranks,
                        point.missing ? "" : std::to_string(point.nodes), csv_cell(point.shape),
                        point.missing ? "" : std::to_string(point.sequences), point.repeats,
                        study.wanted_repeats > 0 ? std::to_string(study.wanted_repeats) : "");
    for (const Figure& figure : figures_of(point)) text += "," + number(figure.value);
    text += "," + csv_cell(point.marks()) + "\r\n";
  }
  return text;
}

std::string study_json(const StudyFigures& study) {
  nlohmann::ordered_json json;
  json["format"] = 1;
  json["title"] = study.title;
  json["scaling"] = kind_of(study);
  json["machine"] = study.machine;
  json["program"] = study.program;
  json["warnings"] = study.warnings;
  json["wanted_repeats"] = study.wanted_repeats;
  json["base"] = nullptr;
  if (study.base) json["base"] = study.points[*study.base].name;
  json["points"] = nlohmann::ordered_json::array();
  for (const PointFigures& point : study.points) {
    nlohmann::ordered_json one;
    one["name"] = point.name;
    one["ranks"] = point.ranks;
    one["nodes"] = point.nodes;
    one["mesh"] = point.shape;
    one["sequences"] = point.sequences;
    one["repeats"] = point.repeats;
    for (const Figure& figure : figures_of(point)) one[figure.name] = figure.value;
    one["why_no_energy"] = point.why_no_energy;
    one["missing"] = point.missing;
    one["shared_cores"] = point.shared_cores;
    one["emulated"] = point.emulated;
    one["holes"] = point.holes;
    one["other_program"] = point.other_program;
    json["points"].push_back(one);
  }
  json["rooflines"] = nlohmann::ordered_json::array();
  for (const Roofline& roofline : study.rooflines)
    json["rooflines"].push_back(nlohmann::ordered_json::parse(roofline_text(roofline)));
  json["no_rooflines"] = study.no_roofs;
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  return json.dump(1, ' ', false, kReplace) + "\n";
}

std::string latex_text(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    switch (letter) {
      case '\\': out += "\\textbackslash{}"; break;
      case '~': out += "\\textasciitilde{}"; break;
      case '^': out += "\\textasciicircum{}"; break;
      case '<': out += "\\textless{}"; break;
      case '>': out += "\\textgreater{}"; break;
      case '|': out += "\\textbar{}"; break;
      case '&':
      case '%':
      case '$':
      case '#':
      case '_':
      case '{':
      case '}': out += '\\'; [[fallthrough]];
      default: out += letter;
    }
  }
  return out;
}

std::string study_latex(const StudyFigures& study) {
  std::string text = "% Needs \\usepackage{booktabs}.\n";
  for (const std::string& remark : {study_remarks(study)})
    for (std::size_t at = 0; at < remark.size(); at = remark.find('\n', at) + 1)
      text += "% " + remark.substr(at, remark.find('\n', at) - at) + "\n";
  text +=
      "\\begin{tabular}{rlrrrrrrrrl}\n\\toprule\n"
      "ranks & mesh & $n$ & step/ms & range/ms & speed-up & eff./\\% & wait/\\% & "
      "sent/MiB & MFU/\\% & \\\\\n\\midrule\n";
  constexpr const char* kNone = "--";
  for (const PointFigures& p : study.points) {
    const auto or_none = [&](double value, double unit) {
      return std::isfinite(value) ? fmt::format("{:.4g}", value * unit) : std::string(kNone);
    };
    std::string mesh = p.missing ? kNone : "$";
    for (const char letter : p.shape)
      mesh += letter == 'x' ? "\\times" : letter == '*' ? "\\cdot" : std::string(1, letter);
    if (!p.missing) mesh += "$";
    const std::string spread =
        p.missing ? kNone
                  : fmt::format("{:.4g}--{:.4g}", 1e3 * p.seconds.low, 1e3 * p.seconds.high);
    text += fmt::format("{} & {} & {} & {} & {} & {} & {} & {} & {} & {} & {} \\\\\n", p.ranks,
                        mesh, p.repeats, or_none(p.seconds.middle, 1e3), spread,
                        factor(p.speed_up.middle, kNone), percent(p.efficiency.middle, kNone),
                        percent(p.comm_fraction, kNone), or_none(p.counted_bytes, 1.0 / (1 << 20)),
                        percent(p.mfu, kNone), latex_text(p.marks()));
  }
  return text + "\\bottomrule\n\\end{tabular}\n";
}

}  // namespace t3d
