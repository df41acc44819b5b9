// A form of the log of steps that is switched on later gets the steps before from log.jsonl.
// Internal to `io`.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "io/lives/missing_steps.hpp"
#include "record/log/step_record.hpp"

namespace t3d {

/// The steps that a form has, heard in their order.
struct StepsThere {
  /// A form that is longer is looked at in its last bytes: what is missing before them was told at
  /// the starts before.
  static constexpr index_t kMostBytes = index_t{32} << 20;
  std::optional<index_t> first;
  MissingSteps missing;  // between those that were looked at
  void add(index_t step) {
    if (!first) first = step;
    missing.add(step);
  }
};

struct FilledUp {
  index_t first = 0, steps = 0;  // that were put
  MissingSteps lacking;          // steps of the log before the last one there that are not there
};

/// put() hears the records of `log`, a log.jsonl which lacks `of_log`, that are behind all steps
/// that are there: all of them where nothing is yet, and the rest where a fill-up was ended.
/// Between the steps that are there no other can be written. Error(io).
FilledUp fill_up(const std::string& log, const MissingSteps& of_log, const StepsThere& is_there,
                 const std::function<void(const StepRecord&)>& put);

}  // namespace t3d
