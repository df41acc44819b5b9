// A form of the log of steps that is switched on later gets the steps before from log.jsonl.
// Internal to `io`.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "io/log/missing_steps.hpp"
#include "io/log/step_record.hpp"

namespace t3d {

struct FilledUp {
  index_t first = 0, steps = 0;  // that were put
  MissingSteps lacking;          // steps of the log that are not among those that are there
};

/// Where nothing `is_there` yet: put() hears every record of `log`, a log.jsonl. Else nothing is
/// put: between the steps that are there no other can be written. Error(io).
FilledUp fill_up(const std::string& log, const std::vector<index_t>& is_there,
                 const std::function<void(const StepRecord&)>& put);

}  // namespace t3d
