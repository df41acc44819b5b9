// What one rank of a job would hold and send. Ranks are simulated one after another in this
// process: the real layers run one real step on a device that only counts memory and a group that
// only counts bytes. Ranks whose parts have equal sizes are alike, so very large jobs need few of
// them.
#pragma once
#include <vector>

#include "core/ledger.hpp"
#include "core/plan.hpp"
#include "hetero/cost/memory.hpp"

namespace t3d {

struct RankPlan {
  Coord coord;
  MemoryAccount memory;
  Ledger counted, predicted;
  index_t parameters = 0;
};

/// Rank number `rank` of the plan's active ones.
[[nodiscard]] RankPlan simulate_rank(const Plan& plan, const OptimizerConfig& optimizer, int rank);

}  // namespace t3d
