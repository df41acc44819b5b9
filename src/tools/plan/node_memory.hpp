// How much memory the nodes of a plan are going to need: what a job script asks for, rather than
// for all that a node has.
#pragma once
#include "core/choices.hpp"
#include "forecast/plan_search.hpp"
#include "sched/sbatch.hpp"

namespace t3d {

/// Of a node of the class on which the ranks with the largest parts sit: tensors and messages,
/// programs, the buffers of a checkpoint, snapshots by `rule`. 0 where the class has GPUs: what
/// their libraries take on the host has no formula.
[[nodiscard]] index_t node_memory_bytes(const FoundPlan& found, std::size_t node_class,
                                        const Cluster& cluster, AsyncRule rule);

/// Asks for a tenth more, at least 256 MiB, at most what the class has; for nothing where the
/// scheduler does not give out memory. `parts`: of the same plan.
void ask_memory(const FoundPlan& found, const Cluster& cluster, AsyncRule rule,
                std::vector<SbatchPart>& parts);

}  // namespace t3d
