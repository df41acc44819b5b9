// One operator of a training step at one shape, ready to be called again and again. Several sets of
// operands in turns, since a step meets each only once: what it needs is seldom in a cache.
#pragma once
#include <functional>

#include "forecast/calibrate/operator_shapes.hpp"
#include "hetero/speed/probe.hpp"

namespace t3d {

/// Queues it once; owns its buffers, of about `footprint` bytes in all. `compute` decides their
/// number formats. Throws ExitCode::unavailable where they do not fit.
[[nodiscard]] std::function<void()> operator_run(const ProbeMachine& machine, OperatorKind kind,
                                                 ComputeType compute, const OperatorShape& shape,
                                                 double footprint);

}  // namespace t3d
