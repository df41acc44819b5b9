// The job that a set of nodes with its best plan is, as simulate knows it: what `plan` tells of
// time and cost is of this job, and this job is what it writes.
#pragma once
#include "tools/plan/job_options.hpp"

namespace t3d {

/// The rates of its classes, and of the networks between nodes that it may send over; else it rests
/// on data sheets.
[[nodiscard]] bool rests_on_measurements(const FoundPlan& found, const Cluster& cluster);

/// Of `own`; `all`: the sets of nodes among which are the sizes that it may shrink to. Where the
/// wish leaves it free, the interval of checkpoints is the best one.
[[nodiscard]] SimulatedJob planned_job(const NodesSearched& own,
                                       const std::vector<NodesSearched>& all, const JobWish& wish,
                                       const Cluster& cluster);

}  // namespace t3d
