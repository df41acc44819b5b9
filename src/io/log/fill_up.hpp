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
  MissingSteps lacking;          // steps of the log before the last one there that are not there
};

/// put() hears the records of `log`, a log.jsonl, that are behind all steps that are there: all of
/// them where nothing is yet, and the rest where a fill-up was ended. Between the steps that are
/// there no other can be written. Error(io).
FilledUp fill_up(const std::string& log, const std::vector<index_t>& is_there,
                 const std::function<void(const StepRecord&)>& put);

}  // namespace t3d
