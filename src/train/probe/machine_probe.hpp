// The probe of one rank with its machine's means: device, operators, queue, and the optimizer's own
// orthogonalisation.
#pragma once
#include <functional>

#include "hetero/speed/probe.hpp"
#include "train/machine.hpp"

namespace t3d {

/// Calls `work` with this machine's means; products of orthogonalisation as with these activations.
void with_probe_machine(Machine& machine, DType activation,
                        const std::function<void(const ProbeMachine&)>& work);

/// probe_rank() on this machine. `hooks.together` makes it collective; nothing else does.
[[nodiscard]] RankSpeed probe_machine(Machine& machine, const Plan& plan, const ProbeBudget& budget,
                                      const ProbeHooks& hooks = {});

}  // namespace t3d
