// The numbers of a step, each with its name, for forms that know nothing else: a spreadsheet, a
// TensorBoard. Internal to `io`.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "record/log/step_record.hpp"

namespace t3d {

/// Keys and values of log.jsonl, those inside an object as "phase_seconds/matmul"; without lists,
/// and without `step` and `steps`. Numbers that are not finite (which are not known) are not there.
[[nodiscard]] std::vector<std::pair<std::string, double>> step_scalars(const StepRecord& record);

}  // namespace t3d
