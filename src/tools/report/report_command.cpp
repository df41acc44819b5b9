// transformer3d report RUN... -o report.html: files in, one page out; no ranks, no MPI.
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>

#include "core/counted.hpp"
#include "core/error.hpp"
#include "io/deflate.hpp"
#include "io/output.hpp"
#include "io/output_folder.hpp"
#include "io/partial_file.hpp"
#include "io/posix_file.hpp"
#include "record/log/log_columns.hpp"
#include "run/setup.hpp"
#include "t3d_version.hpp"
#include "tools/commands.hpp"
#include "tools/report/column_code.hpp"
#include "tools/report/report_page.hpp"

namespace t3d {
namespace {

constexpr std::size_t kNamed = 6;  // in a sentence

std::string without_slash(std::string dir) {
  while (dir.size() > 1 && dir.back() == '/') dir.pop_back();
  return dir;
}

bool is_report(const std::string& path) {
  const std::string mark = kReportMark;
  const FileReader file(path);
  std::string begin(mark.size(), '\0');
  begin.resize(static_cast<std::size_t>(
      file.read_up_to(0, begin.data(), static_cast<index_t>(begin.size()))));
  return begin == mark;
}

/// Before the work: what stands at the output's path may be replaced.
void check_report_output(const std::string& path) {
  check_output_file(path);
  if (file_size(path) > 0 && !is_report(path))
    throw_error(ExitCode::usage,
                "{} is there already and is no report of this program; name another file with -o",
                path);
}

std::string stride_note(const char* what, index_t stride) {
  return fmt::format("{} are kept of one step in {}; the values of these are as in the log", what,
                     stride);
}

/// What a reader must know of how the log was read.
std::vector<std::string> log_notes(const LogColumns& log) {
  std::vector<std::string> notes;
  if (log.cut)
    notes.emplace_back(
        "log.jsonl ends in the middle of a line (it is being written, or was cut); "
        "that line is left out");
  if (log.no_records > 0)
    notes.push_back(fmt::format(
        "{} of {} of log.jsonl {}; left out", log.no_records, counted(log.lines, "line"),
        log.no_records == 1 ? "is no record of a step" : "are no records of steps"));
  if (log.out_of_order > 0)
    notes.push_back(
        fmt::format("{} of log.jsonl {} a step that does not follow on the one before; left out",
                    counted(log.out_of_order, "record"), log.out_of_order == 1 ? "has" : "have"));
  if (log.missing.count() > 0)
    notes.push_back(
        fmt::format("log.jsonl lacks {}; curves have a hole there, and sums of tokens and hours "
                    "take the step behind it for each",
                    log.missing.text()));
  if (log.emulated)
    notes.emplace_back(
        "emulated: some ranks were made slower ([emulate]); times are not those of "
        "the machine");
  if (log.step_stride > 1)
    notes.push_back(stride_note("the records of log.jsonl", log.step_stride));
  if (log.rank_stride > 1)
    notes.push_back(stride_note("own times of ranks", log.rank_stride * log.step_stride));
  if (log.part_stride > 1)
    notes.push_back(stride_note("the parts of ranks' times", log.part_stride * log.step_stride));
  return notes;
}

void check_runs(const std::vector<std::string>& dirs) {
  for (auto dir = dirs.begin(); dir != dirs.end(); ++dir)
    if (std::find(dirs.begin(), dir, *dir) != dir)
      throw_error(ExitCode::usage, "{} is named twice", *dir);
}

ReportRun read_run(const std::string& dir, std::map<std::string, std::string>& input) {
  RunFacts facts = read_run_facts(dir);
  LogColumns log = read_log_columns(dir + "/log.jsonl");
  if (facts.saved_step) log.missing.expect_up_to(*facts.saved_step);
  if (log.steps.empty())
    throw_error(ExitCode::no_input, "{} has no step in log.jsonl: nothing was trained, or {}", dir,
                "log.json = false");
  std::vector<std::string> notes = log_notes(log);
  notes.insert(notes.end(), facts.notes.begin(), facts.notes.end());
  ColumnCoder steps(log.steps.size()), ranks(log.steps.size());
  for (const LogColumn& column : log.columns) (column.index < 0 ? steps : ranks).add(column);
  ReportRun run;
  run.json["name"] = dir;
  run.json["notes"] = notes;
  run.json["rows"] = log.steps.size();
  run.json["hole_rows"] = log.hole_rows;
  run.json["strides"] = {log.step_stride, log.rank_stride, log.part_stride};
  run.json["steps"] = steps.head();
  run.json["ranks"] = ranks.head();
  run.json.update(facts.json);
  run.steps = deflated(steps.bytes());
  run.ranks = deflated(ranks.bytes());
  input = std::move(facts.input);
  return run;
}

/// "the runs differ in model.layers, run.seed and 3 other keys: ..."
std::optional<std::string> difference_note(const std::vector<InputDifference>& differences) {
  std::vector<std::string> keys;
  for (const InputDifference& difference : differences)
    if (difference.matters) keys.push_back(difference.key);
  if (keys.empty()) return std::nullopt;
  const std::size_t more = keys.size() - std::min(keys.size(), kNamed);
  keys.resize(keys.size() - more);
  return fmt::format("the runs differ in {}{}: compare their losses with care",
                     fmt::join(keys, ", "), more > 0 ? fmt::format(" and {} more keys", more) : "");
}

ReportJson differences_json(const std::vector<InputDifference>& differences) {
  ReportJson list = ReportJson::array();
  for (const InputDifference& difference : differences)
    list.push_back(
        {{"key", difference.key}, {"values", difference.values}, {"matters", difference.matters}});
  return list;
}

void write_page(const std::string& path, const std::string& page) {
  PartialFile file(path);
  const auto stream = open_to_append(file.name());
  if (std::fwrite(page.data(), 1, page.size(), stream.get()) != page.size() ||
      std::fflush(stream.get()) != 0)
    throw_error(ExitCode::io, "cannot write {}: {}", file.name(), std::strerror(errno));
  file.publish();
}

void make_report(const ReportCommand& command) {
  check_report_output(command.output);
  std::vector<std::string> dirs;
  for (const std::string& dir : command.dirs) dirs.push_back(without_slash(dir));
  check_runs(dirs);
  std::vector<ReportRun> runs;
  std::vector<std::map<std::string, std::string>> inputs;
  for (const std::string& dir : dirs) {
    inputs.emplace_back();
    runs.push_back(read_run(dir, inputs.back()));
  }
  const std::vector<InputDifference> differences = input_differences(inputs);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  ReportJson report{{"version", 1},
                    {"made_by", fmt::format("transformer3d {} ({})", kVersion, kGit)},
                    {"made", std::chrono::duration<double>(now).count()},
                    {"notes", ReportJson::array()},
                    {"differences", differences_json(differences)}};
  if (const auto note = difference_note(differences)) report["notes"].push_back(*note);
  const std::string page = report_page(report, runs);
  write_page(command.output, page);

  for (const ReportRun& run : runs)
    for (const auto& note : run.json["notes"])
      write_output(
          fmt::format("{}: {}\n", run.json["name"].get<std::string>(), note.get<std::string>()));
  for (const auto& note : report["notes"]) write_output(note.get<std::string>() + "\n");
  write_output(fmt::format("{}: {} of {} run{}\n", command.output,
                           format_bytes(static_cast<double>(page.size())), runs.size(),
                           runs.size() == 1 ? "" : "s"));
}

}  // namespace

int run_report(Communicator& world, const CommandLine& command) {
  all_or_none(world, [&] {
    if (world.rank() != 0) return;
    make_report(command.report);
    flush_output();
  });
  return 0;
}

}  // namespace t3d
