#include "record/log/csv_log.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "io/csv_cell.hpp"
#include "io/file_service.hpp"
#include "record/log/log_lines.hpp"
#include "record/log/record_search.hpp"
#include "record/log/step_scalars.hpp"

namespace t3d {
namespace {

constexpr std::string_view kFirstColumns = "step,steps";

/// The fields of a line of names.
std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields(1);
  bool inside = false;  // quotes
  for (std::size_t at = 0; at < line.size(); ++at) {
    const bool twice = inside && line.substr(at, 2) == "\"\"";
    if (line[at] == '"' && !twice)
      inside = !inside;
    else if (line[at] == ',' && !inside)
      fields.emplace_back();
    else
      fields.back() += line[at];
    if (twice) ++at;
  }
  return fields;
}

/// Nothing of a line that is none of a step.
std::optional<index_t> step_of(std::string_view line) {
  index_t step = 0;
  const char* const end = line.data() + line.size();
  const auto [rest, fault] = std::from_chars(line.data(), end, step);
  if (fault != std::errc{} || rest == end || *rest != ',') return std::nullopt;
  return step;
}

/// The names of columns are never longer.
std::string first_line(const std::string& path) {
  constexpr index_t kMostBytes = 1 << 20;
  const FileReader file(path);
  std::string text(static_cast<std::size_t>(std::min(file.size(), kMostBytes)), '\0');
  text.resize(static_cast<std::size_t>(file.read_up_to(0, text.data(), std::ssize(text))));
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

}  // namespace

index_t csv_bytes_until(const std::string& path, index_t last_step) {
  const std::string names = first_line(path);
  const index_t size = file_size(path), begin = std::ssize(names) + 1;
  if (!names.starts_with(kFirstColumns)) return size;  // somebody else's
  if (begin > size) return 0;                          // the names are cut short
  return find_records(path, step_of, last_step, begin).bytes;
}

StepsThere csv_steps(const std::string& path, index_t most_bytes) {
  StepsThere steps;
  const index_t size = file_size(path);
  if (size <= 0) return steps;
  const index_t from = std::max<index_t>(0, size - most_bytes);
  if (from > 0) steps.first = first_record(path, step_of);
  LogLines lines(path, from);
  if (from > 0) static_cast<void>(lines.next());  // maybe not from its beginning
  while (const auto line = lines.next())
    if (const auto step = step_of(*line)) steps.add(*step);
  if (!steps.first || steps.missing.last()) return steps;
  return csv_steps(path, size);
}

CsvLog::CsvLog(std::string path) : path_(std::move(path)) {
  read_columns();
  open();
}

void CsvLog::read_columns() {
  if (file_size(path_) <= 0) return;
  const std::string names = first_line(path_);
  if (!names.starts_with(kFirstColumns))
    throw_error(ExitCode::io, "{} is not a log of steps: its first line does not begin with {}",
                path_, kFirstColumns);
  columns_ = fields_of(names);
  columns_.erase(columns_.begin(), columns_.begin() + 2);
}

// The names stand in the first line: the file is written anew, whole or not at all.
void CsvLog::add_columns(const std::vector<std::string>& names) {
  std::vector<std::string> columns = columns_;
  columns.insert(columns.end(), names.begin(), names.end());
  std::string text(kFirstColumns);
  for (const std::string& name : columns) text += "," + csv_cell(name);
  text += "\n";
  // A line at a time: the file may be long.
  LogLines lines(path_);
  static_cast<void>(lines.next());
  const std::string nothing(names.size(), ',');
  file_.reset();  // what comes before it is open again must not go into the file that is replaced
  index_t said = 0;
  replace_durably(path_, [&]() -> std::optional<std::string> {
    constexpr index_t kPiece = 1 << 20;
    if (!text.empty()) return std::exchange(text, "");
    const auto line = lines.next();
    if (!line) return std::nullopt;
    if (lines.offset() - said > kPiece) {
      said = lines.offset();
      FileService::note_progress();  // the file system does not hang
    }
    return std::string(*line) + nothing + "\n";
  });
  columns_ = std::move(columns);
  open();
}

void CsvLog::open() { file_ = std::make_unique<AppendFile>(path_, "\n"); }

std::string CsvLog::put(const StepRecord& record) {
  const auto scalars = step_scalars(record);
  const std::map<std::string, double> numbers(scalars.begin(), scalars.end());
  try {
    if (!file_) {
      read_columns();
      open();
    }
    std::vector<std::string> added;
    for (const auto& [name, number] : scalars)
      if (std::find(columns_.begin(), columns_.end(), name) == columns_.end())
        added.push_back(name);
    if (!added.empty()) add_columns(added);
  } catch (const Error& error) {
    ++lost_;
    return error.what();
  }
  std::string line = fmt::format("{},{}", record.step, record.steps);
  for (const std::string& name : columns_) {
    const auto found = numbers.find(name);
    line += found == numbers.end() ? "," : fmt::format(",{}", found->second);
  }
  const std::string reason = file_->put(line + "\n");
  if (!reason.empty()) ++lost_;
  return reason;
}

}  // namespace t3d
