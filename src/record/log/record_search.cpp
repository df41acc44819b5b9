#include "record/log/record_search.hpp"

#include <algorithm>

#include "record/log/log_lines.hpp"

namespace t3d {
namespace {

constexpr index_t kNear = 1 << 18;  // bytes that are read line by line

/// The first record that begins in front of byte `before`, and where it ends.
std::optional<FoundRecords> next_record(LogLines& lines, StepOfLine step_of, index_t before) {
  while (lines.offset() < before) {
    const auto line = lines.next();
    if (!line) return std::nullopt;
    if (const auto step = step_of(*line)) return FoundRecords{lines.offset(), step};
  }
  return std::nullopt;
}

}  // namespace

FoundRecords find_records(const std::string& path, StepOfLine step_of, index_t last_step,
                          index_t from) {
  FoundRecords found{from, {}};
  index_t end = std::max<index_t>(file_size(path), 0);  // no such record begins from here on
  while (end - found.bytes > kNear) {
    const index_t middle = found.bytes + (end - found.bytes) / 2;
    LogLines lines(path, middle - 1);
    static_cast<void>(lines.next());  // maybe not from its beginning
    const auto record = next_record(lines, step_of, end);
    if (record && record->last <= last_step)
      found = *record;
    else
      end = middle;
  }
  if (end <= found.bytes) return found;
  LogLines lines(path, found.bytes);
  while (const auto record = next_record(lines, step_of, end)) {
    if (record->last > last_step) break;
    found = *record;
  }
  return found;
}

std::optional<index_t> first_record(const std::string& path, StepOfLine step_of) {
  LogLines lines(path);
  while (const auto line = lines.next())
    if (const auto step = step_of(*line)) return step;
  return std::nullopt;
}

}  // namespace t3d
