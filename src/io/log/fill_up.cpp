#include "io/log/fill_up.hpp"

#include <set>

#include "io/log/log_lines.hpp"
#include "io/posix_file.hpp"

namespace t3d {

FilledUp fill_up(const std::string& log, const std::vector<index_t>& is_there,
                 const std::function<void(const StepRecord&)>& put) {
  FilledUp done;
  if (!path_exists(log)) return done;
  const std::set<index_t> known(is_there.begin(), is_there.end());
  LogLines lines(log);
  while (const auto line = lines.next()) {
    const auto step = step_of_line(*line);
    if (!step || known.contains(*step)) continue;
    if (!known.empty() && *step < *known.rbegin()) {
      done.lacking.miss({*step, *step});
    } else if (const auto record = parse_step(*line)) {
      if (done.steps++ == 0) done.first = record->step;
      put(*record);
    }
  }
  return done;
}

}  // namespace t3d
