#include "io/log/step_log.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/error.hpp"
#include "io/log/csv_log.hpp"
#include "io/log/event_log.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

/// DIR/STEM+SUFFIX, or DIR/STEM.lineage-N+SUFFIX; a file or a folder.
struct StepLog {
  const char *stem, *suffix;
  /// Makes `path` hold what `source`, which may be the same or not there, has up to a step.
  void (*keep)(const std::string& source, const std::string& path, index_t last_step);
  void (*drop)(const std::string& path);
};

std::string text_of(const std::string& path) {
  return file_size(path) > 0 ? read_text_file(path) : "";
}

/// The records of `text` up to `last_step`; a line cut short by a kill goes too.
std::string records_until(std::string_view text, index_t last_step) {
  std::string kept;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto record = nlohmann::json::parse(line, nullptr, false);
    const bool whole =
        record.is_object() && record.contains("step") && record["step"].is_number_integer();
    if (whole && record["step"].get<index_t>() <= last_step) kept.append(line).append("\n");
  }
  return kept;
}

template <auto until>
void keep_lines(const std::string& source, const std::string& path, index_t last_step) {
  const std::string kept = until(text_of(source), last_step);
  if (kept != text_of(path)) write_text_durably(path, kept);
}

void drop_file(const std::string& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
  if (error) throw_error(ExitCode::io, "cannot remove {}: {}", path, error.message());
}

constexpr StepLog kStepLogs[] = {{"/log", ".jsonl", keep_lines<records_until>, drop_file},
                                 {"/log", ".csv", keep_lines<csv_until>, drop_file},
                                 {"/tensorboard", "", keep_events, drop_events}};

std::string path_of(const StepLog& log, const std::string& dir) {
  return dir + log.stem + log.suffix;
}

std::string aside_of(const StepLog& log, const std::string& dir, index_t lineage) {
  return fmt::format("{}{}.lineage-{}{}", dir, log.stem, lineage, log.suffix);
}

void prepare(const StepLog& log, const std::string& dir, const LogLineage& lineage,
             index_t start_step) {
  const auto of_lineage = [&](index_t number) { return aside_of(log, dir, number); };
  const std::string path = path_of(log, dir);
  std::string source = path;
  if (lineage.begins && lineage.number > 0) {
    const std::string before = of_lineage(lineage.number - 1);
    // One that is there already is whole: what the log holds then came to no checkpoint.
    if (path_exists(path) && !path_exists(before)) rename_durably(path, before);
    source = of_lineage(lineage.parent);
  }
  const std::string aside = of_lineage(lineage.number);
  const bool comes_back = !lineage.begins && path_exists(aside);
  log.keep(comes_back ? aside : source, path, start_step);
  if (comes_back) log.drop(aside);
}

}  // namespace

void prepare_step_logs(const std::string& dir, const LogLineage& lineage, index_t start_step) {
  const auto has_aside = [&](const StepLog& log) {
    return path_exists(aside_of(log, dir, lineage.number));
  };
  // A lineage comes back in all forms: one that it never had holds steps of another lineage, and is
  // made anew from log.jsonl. These first: the others say until then that the lineage comes back.
  if (!lineage.begins && std::any_of(std::begin(kStepLogs), std::end(kStepLogs), has_aside))
    for (const StepLog& log : kStepLogs)
      if (!has_aside(log) && path_exists(path_of(log, dir))) log.drop(path_of(log, dir));
  for (const StepLog& log : kStepLogs) prepare(log, dir, lineage, start_step);
}

}  // namespace t3d
