// The files of plan --elastic: an input and a job script for each phase, and submit.sh, which looks
// at the run's newest checkpoint and submits the phase that it is in. A phase's job pauses at its
// last step (run.pause_at) and calls submit.sh as its last act.
#pragma once
#include "config/config_load.hpp"
#include "tools/plan/elastic_plan.hpp"

namespace t3d {

/// Into `folder`. Replaces files of the same names.
void write_elastic_files(const ElasticPlan& plan, const JobWish& wish, const Cluster& cluster,
                         const Config& config, const Origins& origins, const std::string& folder);

/// What it may write.
[[nodiscard]] std::vector<std::string> elastic_file_names();

}  // namespace t3d
