// The speeds of all ranks, measured: operators by class at the shapes of a plan, links in its
// groups, free memory. Every rank gets the same numbers.
#pragma once
#include "train/formation.hpp"
#include "train/probe/machine_probe.hpp"

namespace t3d {

/// Collective over machine.world(). All ranks measure at the same time, since ranks of a node share
/// its power and memory. `budget.seconds` covers operators and links. `dilation`: of this rank
/// (ProbeHooks). What it sends is not in the ledger: how often depends on the clock. What fails on
/// one rank is thrown on all.
[[nodiscard]] Speeds probe_speeds(Machine& machine, const Formation& formation,
                                  const ProbeBudget& budget, double dilation = 1);

}  // namespace t3d
