#include "io/log/csv_log.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "io/csv_cell.hpp"
#include "io/log/step_scalars.hpp"

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

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

}  // namespace

std::string csv_until(std::string_view text, index_t last_step) {
  if (!text.starts_with(kFirstColumns)) return std::string(text);  // somebody else's
  std::string kept;
  for (std::size_t end; (end = text.find('\n')) != std::string_view::npos;
       text.remove_prefix(end + 1)) {
    const std::string_view line = text.substr(0, end);
    const auto step = step_of(line);
    if (step ? *step <= last_step : kept.empty()) kept.append(line).append("\n");
  }
  return kept;
}

std::vector<index_t> csv_steps(std::string_view text) {
  std::vector<index_t> steps;
  for (std::size_t end; (end = text.find('\n')) != std::string_view::npos;
       text.remove_prefix(end + 1))
    if (const auto step = step_of(text.substr(0, end))) steps.push_back(*step);
  return steps;
}

CsvLog::CsvLog(std::string path) : path_(std::move(path)) {
  if (file_size(path_) > 0) {
    const std::string names(first_line(read_text_file(path_)));
    if (!names.starts_with(kFirstColumns))
      throw_error(ExitCode::io,
                  "{} is not a log of steps: its first line does not begin with {}; move it away",
                  path_, kFirstColumns);
    columns_ = fields_of(names);
    columns_.erase(columns_.begin(), columns_.begin() + 2);
  }
  file_ = std::make_unique<AppendFile>(path_, "\n");
}

// The names stand in the first line: the file is written anew, whole or not at all.
void CsvLog::add_columns(const std::vector<std::string>& names) {
  const std::string before = read_text_file(path_);
  std::vector<std::string> columns = columns_;
  columns.insert(columns.end(), names.begin(), names.end());
  std::string text(kFirstColumns);
  for (const std::string& name : columns) text += "," + csv_cell(name);
  text += "\n";
  const std::string nothing(names.size(), ',');
  std::string_view lines = before;
  lines.remove_prefix(std::min(first_line(lines).size() + 1, lines.size()));
  for (; !lines.empty(); lines.remove_prefix(std::min(first_line(lines).size() + 1, lines.size())))
    text.append(first_line(lines)).append(nothing).append("\n");
  write_text_durably(path_, text);
  file_ = std::make_unique<AppendFile>(path_, "\n");
  columns_ = std::move(columns);
}

std::string CsvLog::put(const StepRecord& record) {
  std::map<std::string, double> numbers;
  std::vector<std::string> added;
  for (const auto& [name, number] : step_scalars(record)) {
    numbers[name] = number;
    if (std::find(columns_.begin(), columns_.end(), name) == columns_.end()) added.push_back(name);
  }
  try {
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
