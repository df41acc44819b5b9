// The probe of one rank with its machine's means: device, operators, queue, and the optimizer's own
// orthogonalisation.
#pragma once
#include "hetero/speed/probe.hpp"
#include "train/machine.hpp"

namespace t3d {

/// probe_rank() on this machine. `hooks.together` makes it collective; nothing else does.
[[nodiscard]] RankSpeed probe_machine(Machine& machine, const Plan& plan, const ProbeBudget& budget,
                                      const ProbeHooks& hooks = {});

}  // namespace t3d
