#include "record/log/step_log.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <ranges>

#include "core/error.hpp"
#include "io/lives/missing_steps.hpp"
#include "io/posix_file.hpp"
#include "record/log/csv_log.hpp"
#include "record/log/event_log.hpp"
#include "record/log/record_search.hpp"

namespace t3d {
namespace {

/// DIR/STEM+SUFFIX, or DIR/STEM.lineage-N+SUFFIX; a file or a folder.
struct StepLog {
  StepForm form;
  const char *stem, *suffix;
  void (*cut)(const std::string& path, index_t last_step);
  /// `path` has nothing of its own.
  void (*copy)(const std::string& source, const std::string& path, index_t last_step);
  void (*drop)(const std::string& path);
};

index_t json_bytes_until(const std::string& path, index_t last_step) {
  return find_records(path, step_of_line, last_step).bytes;
}

template <auto bytes_until>
void cut_lines(const std::string& path, index_t last_step) {
  if (file_size(path) <= 0) return;
  const index_t bytes = bytes_until(path, last_step);
  if (bytes < file_size(path)) truncate_durably(path, bytes);
}

template <auto bytes_until>
void copy_lines(const std::string& source, const std::string& path, index_t last_step) {
  if (file_size(source) > 0) copy_durably(source, path, bytes_until(source, last_step));
}

void drop_file(const std::string& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
  if (error) throw_error(ExitCode::io, "cannot remove {}: {}", path, error.message());
}

constexpr StepLog kStepLogs[] = {
    {StepForm::json, "/log", ".jsonl", cut_lines<json_bytes_until>, copy_lines<json_bytes_until>,
     drop_file},
    {StepForm::csv, "/log", ".csv", cut_lines<csv_bytes_until>, copy_lines<csv_bytes_until>,
     drop_file},
    {StepForm::events, "/tensorboard", "", cut_events, copy_events, drop_events}};

std::string path_of(const StepLog& log, const std::string& dir) {
  return dir + log.stem + log.suffix;
}

std::string aside_of(const StepLog& log, const std::string& dir, index_t lineage) {
  return fmt::format("{}{}.lineage-{}{}", dir, log.stem, lineage, log.suffix);
}

/// "" or why it cannot be done.
template <class Work>
std::string reason_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::optional<StepLogFault> fault_of(const StepLog& log, const std::string& path,
                                     const std::string& reason) {
  if (reason.empty()) return std::nullopt;
  return StepLogFault{log.form, path, reason, false, ""};
}

/// The log of a lineage that begins behind another one.
std::optional<StepLogFault> begin(const StepLog& log, const std::string& dir,
                                  const LogLineage& lineage, index_t start_step) {
  const std::string path = path_of(log, dir), before = aside_of(log, dir, lineage.number - 1);
  // One that is there already is whole: what the log holds then came to no checkpoint.
  if (path_exists(path) && !path_exists(before))
    rename_durably(path, before);
  else if (path_exists(path))
    log.drop(path);
  if (lineage.parent < 0) return std::nullopt;
  const std::string source = aside_of(log, dir, lineage.parent);
  if (!path_exists(source)) return std::nullopt;
  const std::string reason = reason_of([&] { log.copy(source, path, start_step); });
  if (reason.empty()) return std::nullopt;
  // Some event files may be there, and no others behind them.
  const bool usable = reason_of([&] { log.drop(path); }).empty();
  return StepLogFault{log.form, path, reason, usable, source};
}

/// The log of a lineage that goes on after another one has been given up.
std::optional<StepLogFault> bring_back(const StepLog& log, const std::string& dir,
                                       const LogLineage& lineage, index_t start_step) {
  const std::string path = path_of(log, dir), aside = aside_of(log, dir, lineage.number);
  return fault_of(log, path, reason_of([&] {
                    if (path_exists(path)) log.drop(path);
                    if (path_exists(path)) {  // a folder in which others have files, too
                      log.copy(aside, path, start_step);
                      log.drop(aside);
                    } else {
                      rename_durably(aside, path);
                    }
                    log.cut(path, start_step);
                  }));
}

}  // namespace

std::vector<StepLogFault> prepare_step_logs(const std::string& dir, const LogLineage& lineage,
                                            index_t start_step) {
  const auto is_aside = [&](const StepLog& log) {
    return path_exists(aside_of(log, dir, lineage.number));
  };
  // A lineage comes back in all forms: one that it never had holds steps of another lineage, and is
  // made anew from log.jsonl. These first: the others say until then that the lineage comes back.
  if (!lineage.begins && std::any_of(std::begin(kStepLogs), std::end(kStepLogs), is_aside))
    for (const StepLog& log : kStepLogs)
      if (!is_aside(log) && path_exists(path_of(log, dir))) log.drop(path_of(log, dir));
  std::vector<StepLogFault> faults;
  // log.jsonl last: the other forms can be made from it, where a kill in between drops them.
  for (const StepLog& log : std::views::reverse(kStepLogs)) {
    const std::string path = path_of(log, dir);
    std::optional<StepLogFault> fault;
    if (lineage.begins && lineage.number > 0)
      fault = begin(log, dir, lineage, start_step);
    else if (!lineage.begins && is_aside(log))
      fault = bring_back(log, dir, lineage, start_step);
    else if (path_exists(path))
      fault = fault_of(log, path, reason_of([&] { log.cut(path, start_step); }));
    if (fault) faults.push_back(*fault);
  }
  return faults;
}

}  // namespace t3d
