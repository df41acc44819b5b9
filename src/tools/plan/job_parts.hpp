// What Slurm is asked for so that a job gets the nodes of a plan: partition, features, and which
// nodes it must not get instead.
#pragma once
#include <vector>

#include "forecast/job_nodes.hpp"
#include "sched/sbatch.hpp"

namespace t3d {

/// One for each class, in the order of the ranks. All features of a class are asked for. Slurm
/// knows no "without": nodes of other classes of the partition that have these features too are
/// named, where their class says which they are.
[[nodiscard]] std::vector<SbatchPart> sbatch_parts(const std::vector<JobPart>& parts,
                                                   const Cluster& cluster);

}  // namespace t3d
