// What the ranks of a job would hold and send, computed from the plan alone; and the check of that
// against the program (rank_plan.hpp), for jobs small enough to run it.
#pragma once
#include <string>
#include <vector>

#include "hetero/cost/flops.hpp"
#include "hetero/cost/memory.hpp"
#include "hetero/cost/traffic.hpp"
#include "run/rank_plan.hpp"

namespace t3d {

struct RankCost {
  Coord coord;
  index_t ranks = 1;  // that are alike
  MemoryCost memory;
  TrafficTable sent;  // in a step
  StepWork work;
  index_t parameters = 0;
};

/// Of every rank of small jobs, of one of each kind of large ones. Ranks are of one kind where
/// their parts have equal sizes and they are first of the same axes: the first get what sub-splits
/// leave over. Kinds are found axis by axis, so that 65,536 ranks take no longer than 64.
[[nodiscard]] std::vector<RankCost> rank_costs(const Plan& plan);

/// Runs one rank of each kind on a device that only counts and returns a line for each number that
/// differs: bytes and weights at all, memory by more than 2 %. Nothing for jobs of more than 64
/// ranks.
[[nodiscard]] std::vector<std::string> check_costs(const Plan& plan,
                                                   const OptimizerConfig& optimizer,
                                                   const std::vector<RankCost>& costs);

}  // namespace t3d
