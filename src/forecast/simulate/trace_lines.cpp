#include "forecast/simulate/trace_lines.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/utf8.hpp"

namespace t3d {

TraceLines::TraceLines(std::string_view text, std::string source)
    : text_(text), source_(std::move(source)) {
  std::string_view line;
  if (!take_line(line)) throw_error(ExitCode::config, "{} is empty", source_);
  divider_ = line.find('|') != std::string_view::npos ? '|' : ',';
  divide(line);
  names_.assign(cells_.begin(), cells_.end());
}

std::size_t TraceLines::column(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end())
    throw_error(ExitCode::config, "{}:1: there is no column {}", source_, name);
  return static_cast<std::size_t>(found - names_.begin());
}

bool TraceLines::next() {
  std::string_view line;
  if (!take_line(line)) return false;
  divide(line);
  if (cells_.size() != names_.size())
    refuse("{} cells, the first line has {}", cells_.size(), names_.size());
  return true;
}

double TraceLines::number(std::size_t column) const {
  const std::string_view word = cells_[column];
  double value = 0;
  const auto [end, reason] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (reason != std::errc{} || end != word.data() + word.size() || !std::isfinite(value))
    refuse("{} is '{}', not a number", names_[column], printable(word, 40));
  return value;
}

void TraceLines::refuse_line(const std::string& what) const {
  throw_error(ExitCode::config, "{}:{}: {}", source_, line_, what);
}

bool TraceLines::take_line(std::string_view& line) {
  while (at_ < text_.size()) {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    line = text_.substr(at_, end - at_);
    at_ = end + 1;
    ++line_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) return true;
  }
  return false;
}

void TraceLines::divide(std::string_view line) {
  cells_.clear();
  bool quoted = false;
  int depth = 0;
  std::size_t from = 0;
  const auto take = [&](std::size_t to) {
    std::string_view cell = line.substr(from, to - from);
    if (cell.size() >= 2 && cell.starts_with('"') && cell.ends_with('"'))
      cell = cell.substr(1, cell.size() - 2);
    cells_.push_back(cell);
    from = to + 1;
  };
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '"') quoted = !quoted;
    if (line[at] == '[') ++depth;
    if (line[at] == ']') --depth;
    const bool inside = divider_ == ',' && (quoted || depth > 0);
    if (line[at] == divider_ && !inside) take(at);
  }
  take(line.size());
}

}  // namespace t3d
