// A study as one Slurm array job: a task for each repeat of each point, one at a time, the first
// repeat of all points first. Tasks whose run has ended do nothing, so the script may be submitted
// again.
#pragma once
#include <string>

#include "tools/scaling/study_plan.hpp"

namespace t3d {

/// The script. Error(config) where a path cannot stand in it.
[[nodiscard]] std::string slurm_study(const std::string& dir, const StudyPlan& plan,
                                      index_t ranks_per_node);

}  // namespace t3d
