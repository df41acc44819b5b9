#include "tools/scaling/collect.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/counted.hpp"
#include "core/error.hpp"
#include "io/posix_file.hpp"
#include "record/study/roofline_plot.hpp"
#include "record/study/study_plot.hpp"
#include "record/study/study_text.hpp"
#include "tools/scaling/study_plan.hpp"

namespace t3d {
namespace {

/// What `probe --operators` has written, where it has.
void add_roofline(const std::string& name, const std::string& file, StudyFigures& study) {
  if (!path_exists(file)) {
    study.no_roofs.push_back(fmt::format("of {}: there is no {}", name, file));
    return;
  }
  try {
    study.rooflines.push_back(parse_roofline(read_record_file(file), file));
    study.rooflines.back().name = name;
  } catch (const Error& error) {  // the study has its times all the same
    study.no_roofs.push_back(fmt::format("of {}: {}", name, error.what()));
  }
}

std::string roofline_file(std::string name) {
  std::replace(name.begin(), name.end(), '/', '-');
  return fmt::format("roofline-{}.svg", name);
}

/// Every repeat that has ended, also those beyond the wanted ones, of an earlier call.
std::vector<RunFigures> finished_runs(const std::string& dir, const PlannedPoint& point) {
  std::vector<index_t> repeats;
  const std::string prefix = "repeat-";
  for (const std::string& name : list_folder(dir + "/" + point.name)) {
    const std::string number = name.starts_with(prefix) ? name.substr(prefix.size()) : "";
    const bool digits = !number.empty() && number.size() < 9 &&
                        number.find_first_not_of("0123456789") == std::string::npos;
    if (digits && is_finished(dir, point, std::stoll(number)))
      repeats.push_back(std::stoll(number));
  }
  std::sort(repeats.begin(), repeats.end());
  std::vector<RunFigures> runs;
  for (const index_t repeat : repeats)
    runs.push_back(read_run_figures(repeat_folder(dir, point, repeat)));
  return runs;
}

/// Of a point whose runs have more than one.
std::string shapes_text(const std::map<std::string, StudyPoint>& by_shape) {
  std::vector<std::string> shapes;
  for (const auto& [shape, point] : by_shape)
    shapes.push_back(fmt::format("{} ({})", shape, counted(std::ssize(point.runs), "run")));
  return fmt::format(
      "runs of {} chose different shapes and are a row for each: {}; --shapes compares shapes that "
      "you name, with all repeats each",
      by_shape.begin()->second.name, fmt::join(shapes, ", "));
}

StudyFigures of_study(const std::string& dir) {
  const StudyPlan plan = read_study(dir);
  std::vector<StudyPoint> points;
  std::vector<std::string> warnings;
  // With mesh.cuboid = "auto" runs of one point may have different shapes: a row for each.
  for (const PlannedPoint& point : plan.points) {
    std::map<std::string, StudyPoint> by_shape;
    for (RunFigures& run : finished_runs(dir, point))
      by_shape.try_emplace(run.shape, StudyPoint{point.name, point.ranks, {}})
          .first->second.runs.push_back(std::move(run));
    if (by_shape.empty()) points.push_back({point.name, point.ranks, {}});
    if (by_shape.size() > 1) warnings.push_back(shapes_text(by_shape));
    for (auto& [shape, one] : by_shape) points.push_back(std::move(one));
  }
  StudyFigures study = study_figures(plan.title, plan.weak, plan.repeats, std::move(points));
  study.warnings.insert(study.warnings.end(), warnings.begin(), warnings.end());
  for (const PlannedPoint& point : plan.points)
    add_roofline(point.name, operators_file(dir, point), study);
  return study;
}

/// Folders below `dir`, two deep, that have a run.json.
std::vector<std::string> run_folders(const std::string& dir) {
  std::vector<std::string> found;
  for (const std::string& name : list_folder(dir)) {
    const std::string folder = dir + "/" + name;
    if (!is_folder(folder)) continue;
    if (path_exists(folder + "/run.json"))
      found.push_back(folder);
    else
      for (const std::string& inner : list_folder(folder))
        if (path_exists(folder + "/" + inner + "/run.json")) found.push_back(folder + "/" + inner);
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Strong where all have as many sequences, else weak: study_figures() looks whether that is so.
StudyFigures of_runs(const std::string& dir) {
  const std::vector<std::string> folders = run_folders(dir);
  if (folders.empty())
    throw_error(ExitCode::no_input,
                "{} is no study (study.json), and no folder in it is one of a run (run.json)", dir);
  std::map<std::pair<index_t, std::string>, StudyPoint> by_shape;
  bool weak = false;
  index_t sequences = 0;
  for (const std::string& folder : folders) {
    RunFigures run = read_run_figures(folder);
    weak = weak || (sequences > 0 && run.sequences != sequences);
    sequences = run.sequences;
    StudyPoint& point = by_shape[{run.ranks, run.shape}];
    point.name = fmt::format("ranks-{}", run.ranks);
    point.ranks = run.ranks;
    point.runs.push_back(std::move(run));
  }
  std::vector<StudyPoint> points;
  for (auto& [key, point] : by_shape) points.push_back(std::move(point));
  const std::string title = std::filesystem::path(dir).lexically_normal().filename().string();
  StudyFigures study = study_figures(title.empty() ? dir : title, weak, 0, std::move(points));
  for (const std::string& folder : folders)
    add_roofline(std::filesystem::path(folder).lexically_relative(dir).string(),
                 folder + "/operators.json", study);
  return study;
}

}  // namespace

StudyFigures collect_study(const std::string& dir) {
  if (!is_folder(dir)) throw_error(ExitCode::no_input, "there is no folder {}", dir);
  return path_exists(dir + "/study.json") ? of_study(dir) : of_runs(dir);
}

std::string write_study(const std::string& dir, const StudyFigures& study) {
  write_text_durably(dir + "/scaling.csv", study_csv(study));
  write_text_durably(dir + "/scaling.json", study_json(study));
  write_text_durably(dir + "/scaling.tex", study_latex(study));
  write_text_durably(dir + "/scaling.svg", study_plot(study));
  std::string files = "scaling.csv, scaling.json, scaling.tex, scaling.svg";
  for (const Roofline& roofline : study.rooflines) {
    const std::string file = roofline_file(roofline.name);
    write_text_durably(dir + "/" + file, roofline_plot(roofline));
    files += ", " + file;
  }
  std::string text = study_table(study) + fmt::format("in {}: {}\n", dir, files);
  if (!study.no_roofs.empty())
    text +=
        "(transformer3d probe INPUT --operators FILE, with the ranks of the run, measures what a "
        "roofline is drawn of)\n";
  return text;
}

}  // namespace t3d
