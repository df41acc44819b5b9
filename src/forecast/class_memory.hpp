// What the ranks of a plan need on nodes of each class.
#pragma once
#include <vector>

#include "core/plan.hpp"
#include "forecast/job_nodes.hpp"

namespace t3d {

/// The most that a rank of the class needs (needed_bytes()), and the most elements of weights at
/// rest on one. 0 where the class has no rank of the plan.
struct ClassMemory {
  index_t needed_bytes = 0, parameters = 0;
};

/// Of all ranks of the plan, by class of the cluster; of ranks alike (hetero/planner/slab_key.hpp)
/// one is looked at.
[[nodiscard]] std::vector<ClassMemory> class_memory(const Plan& plan, const JobNodes& nodes);

}  // namespace t3d
