#include "record/study/study.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "core/counted.hpp"
#include "core/error.hpp"
#include "core/robust.hpp"

namespace t3d {
namespace {

constexpr std::size_t kLeastRuns = 3;  // before a spread means anything

std::vector<double> known(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  return values;
}

double median_known(const std::vector<RunFigures>& runs, double RunFigures::*figure) {
  std::vector<double> values;
  for (const RunFigures& run : runs) values.push_back(run.*figure);
  values = known(std::move(values));
  return values.empty() ? kUnknown : median_of(values);
}

PointFigures figures_of(const StudyPoint& point) {
  PointFigures figures;
  figures.name = point.name;
  figures.ranks = point.ranks;
  figures.repeats = std::ssize(point.runs);
  figures.missing = point.runs.empty();
  if (figures.missing) return figures;
  const RunFigures& first = point.runs.front();
  figures.shape = first.shape;
  figures.nodes = first.nodes;
  figures.sequences = first.sequences;
  figures.why_no_energy = first.why_no_energy;
  std::vector<double> seconds, rates;
  for (const RunFigures& run : point.runs) {
    seconds.push_back(run.seconds);
    rates.push_back(run.tokens / run.seconds);
    figures.shared_cores = figures.shared_cores || run.shared_cores;
    figures.emulated = figures.emulated || run.emulated;
    if (!run.missing_steps.empty())
      figures.holes.push_back(fmt::format("{}/log.jsonl lacks {}", run.folder, run.missing_steps));
  }
  figures.seconds = spread_of(seconds);
  figures.rate = spread_of(rates);
  figures.predicted_seconds = median_known(point.runs, &RunFigures::predicted_seconds);
  figures.mfu = median_known(point.runs, &RunFigures::mfu);
  figures.mfu_of_peak = median_known(point.runs, &RunFigures::mfu_of_peak);
  figures.imbalance = median_known(point.runs, &RunFigures::imbalance);
  figures.comm_fraction = median_known(point.runs, &RunFigures::comm_fraction);
  figures.counted_bytes = median_known(point.runs, &RunFigures::counted_bytes);
  figures.predicted_bytes = median_known(point.runs, &RunFigures::predicted_bytes);
  figures.tensor_bytes = median_known(point.runs, &RunFigures::tensor_bytes);
  figures.resident_bytes = median_known(point.runs, &RunFigures::resident_bytes);
  figures.joules = median_known(point.runs, &RunFigures::joules);
  return figures;
}

std::optional<std::size_t> base_of(const std::vector<PointFigures>& points) {
  std::optional<std::size_t> base;
  for (std::size_t at = 0; at < points.size(); ++at) {
    const PointFigures& point = points[at];
    if (point.missing) continue;
    if (!base || point.ranks < points[*base].ranks ||
        (point.ranks == points[*base].ranks && point.rate.middle > points[*base].rate.middle))
      base = at;
  }
  return base;
}

RunSpread scaled(const RunSpread& spread, double factor) {
  return {spread.low * factor, spread.middle * factor, spread.high * factor};
}

// All against the first: what belongs to it belongs together.
void check_common(const std::vector<StudyPoint>& points, bool weak) {
  const RunFigures* first = nullptr;
  for (const StudyPoint& point : points) {
    for (const RunFigures& run : point.runs) {
      if (first == nullptr) first = &run;
      if (const std::string other = difference(*first, run); !other.empty())
        throw_error(ExitCode::config, "these runs do not belong together: {}", other);
      if (run.ranks != point.ranks)
        throw_error(ExitCode::config, "{} has {}, and stands for {}", run.folder,
                    counted(run.ranks, "rank"), point.ranks);
      const index_t own = weak ? run.sequences * first->ranks : run.sequences;
      const index_t expected = weak ? first->sequences * run.ranks : first->sequences;
      if (own != expected)
        throw_error(ExitCode::config,
                    "these runs do not belong together: {} has {} on {} and {} has {} on {}, "
                    "which is no {} scaling",
                    first->folder, counted(first->sequences, "sequence"),
                    counted(first->ranks, "rank"), run.folder, run.sequences, run.ranks,
                    weak ? "weak" : "strong");
    }
  }
}

void add_machine(const std::vector<StudyPoint>& points, StudyFigures& study) {
  index_t nodes = 0;
  for (const StudyPoint& point : points) {
    for (const RunFigures& run : point.runs) {
      nodes = std::max(nodes, run.nodes);
      const auto word = [&](const char* key) {
        const auto found = run.common.find(key);
        return found == run.common.end() ? std::string("?") : found->second;
      };
      study.machine = fmt::format("{} node{}, {}", nodes, nodes == 1 ? "" : "s", word("processor"));
      if (word("device") != "cpu") study.machine += ", " + word("device");
    }
  }
}

using Program = std::map<std::string, std::string>;

std::string program_text(const Program& program) {
  const auto word = [&](const char* key) {
    const auto found = program.find(key);
    return found == program.end() || found->second.empty() ? std::string("not known")
                                                           : found->second;
  };
  constexpr std::size_t kDigits = 16;
  return fmt::format("commit {}, build {} ({})", word("commit"), word("build").substr(0, kDigits),
                     word("build_type"));
}

/// Of most runs; of as many the one that comes first.
const Program* usual_program(const std::vector<StudyPoint>& points) {
  std::map<Program, index_t> counts;
  for (const StudyPoint& point : points)
    for (const RunFigures& run : point.runs) ++counts[run.program];
  const Program* usual = nullptr;
  for (const StudyPoint& point : points)
    for (const RunFigures& run : point.runs)
      if (usual == nullptr || counts[run.program] > counts[*usual]) usual = &run.program;
  return usual;
}

/// A rebuilt program may be as fast as before, or not: the figures stay, and say so.
void add_programs(const std::vector<StudyPoint>& points, StudyFigures& study) {
  const Program* const usual = usual_program(points);
  if (usual == nullptr) return;
  study.program = program_text(*usual);
  std::map<Program, std::vector<std::string>> others;
  for (std::size_t at = 0; at < points.size(); ++at)
    for (const RunFigures& run : points[at].runs)
      if (run.program != *usual) {
        others[run.program].push_back(run.folder);
        study.points[at].other_program = true;
      }
  constexpr std::size_t kNamed = 3;
  for (const auto& [program, folders] : others) {
    const auto named = std::span(folders).first(std::min(kNamed, folders.size()));
    const std::string more =
        folders.size() > kNamed ? fmt::format(" and {} more", folders.size() - kNamed) : "";
    study.warnings.push_back(
        fmt::format("the program was replaced between the runs: {}{} {} of {}; most runs are of {}",
                    fmt::join(named, ", "), more, folders.size() == 1 ? "is" : "are",
                    program_text(program), study.program));
  }
}

}  // namespace

RunSpread spread_of(const std::vector<double>& values) {
  const std::vector<double> all = known(values);
  if (all.empty()) return {};
  const auto [low, high] = std::minmax_element(all.begin(), all.end());
  return {*low, median_of(all), *high};
}

bool settled(const std::vector<double>& seconds, double most) {
  return seconds.size() >= kLeastRuns && spread_of(seconds).relative() <= most;
}

std::string PointFigures::marks() const {
  std::string text;
  const auto add = [&](bool is, const char* mark) {
    if (is) text += (text.empty() ? "" : ", ") + std::string(mark);
  };
  add(missing, "missing");
  add(shared_cores, "shared cores");
  add(emulated, "emulated");
  add(!holes.empty(), "steps missing");
  add(other_program, "other program");
  return text;
}

StudyFigures study_figures(std::string title, bool weak, index_t wanted_repeats,
                           std::vector<StudyPoint> points) {
  std::stable_sort(points.begin(), points.end(),
                   [](const StudyPoint& a, const StudyPoint& b) { return a.ranks < b.ranks; });
  check_common(points, weak);
  StudyFigures study;
  study.title = std::move(title);
  study.weak = weak;
  study.wanted_repeats = wanted_repeats;
  add_machine(points, study);
  for (const StudyPoint& point : points) study.points.push_back(figures_of(point));
  add_programs(points, study);
  study.base = base_of(study.points);
  if (!study.base) return study;
  const PointFigures base = study.points[*study.base];
  for (PointFigures& point : study.points) {
    if (point.missing) continue;
    const auto base_ranks = static_cast<double>(base.ranks);
    point.speed_up = scaled(point.rate, base_ranks / base.rate.middle);
    point.efficiency = scaled(point.speed_up, 1 / static_cast<double>(point.ranks));
  }
  return study;
}

}  // namespace t3d
