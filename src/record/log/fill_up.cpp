#include "record/log/fill_up.hpp"

#include <algorithm>

#include "io/posix_file.hpp"
#include "record/log/log_lines.hpp"
#include "record/log/record_search.hpp"

namespace t3d {
namespace {

/// Tells `lacking` the steps of `range` that are not in `but`, whose ranges rise.
void miss_but(MissingSteps& lacking, StepRange range, const std::vector<StepRange>& but) {
  for (const StepRange& other : but) {
    if (other.last < range.first) continue;
    if (other.first > range.last) break;
    if (other.first > range.first) lacking.miss({range.first, other.first - 1});
    range.first = other.last + 1;
  }
  if (range.first <= range.last) lacking.miss(range);
}

}  // namespace

FilledUp fill_up(const std::string& log, const MissingSteps& of_log, const StepsThere& is_there,
                 const std::function<void(const StepRecord&)>& put) {
  FilledUp done;
  if (file_size(log) <= 0) return done;
  index_t from = 0;
  if (const auto last = is_there.missing.last()) {
    from = find_records(log, step_of_line, *last).bytes;
    const auto first = first_record(log, step_of_line);
    if (first && *first < *is_there.first)
      miss_but(done.lacking, {*first, *is_there.first - 1}, of_log.ranges());
    for (StepRange range : is_there.missing.ranges()) {
      range.first = std::max(range.first, first.value_or(0));
      range.last = std::min(range.last, of_log.last().value_or(range.last));
      if (range.first <= range.last) miss_but(done.lacking, range, of_log.ranges());
    }
  }
  LogLines lines(log, from);
  while (const auto line = lines.next()) {
    const auto record = parse_step(*line);
    if (!record || (is_there.missing.last() && record->step <= *is_there.missing.last())) continue;
    if (done.steps++ == 0) done.first = record->step;
    put(*record);
  }
  return done;
}

}  // namespace t3d
