// How much equal pieces of computing differ between the ranks of a class that meet after each.
#pragma once
#include <utility>

#include "comm/communicator.hpp"
#include "hetero/speed/probe.hpp"

namespace t3d {

/// NodeClass::jitter and its standard error; zeros for a rank alone. Collective over `group`, which
/// carries the machine's device memory; the same on all its ranks. About `seconds`. `slowdown`:
/// emulation, of this rank; its communicator makes it so much slower already.
[[nodiscard]] std::pair<double, double> measure_jitter(const ProbeMachine& machine,
                                                       Communicator& group, double seconds,
                                                       double slowdown = 1);

}  // namespace t3d
