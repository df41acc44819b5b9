// How much equal pieces of computing differ between the ranks of a class that meet after each.
#pragma once
#include "comm/communicator.hpp"
#include "forecast/cluster/meeting.hpp"
#include "hetero/speed/probe.hpp"

namespace t3d {

struct MeasuredJitter {
  Jitter jitter;
  double error = 0;  // standard error of Jitter::relative
};

/// From pieces of kJitterPiece and of ten times that; zeros for a rank alone. Collective over
/// `group`, which carries the machine's device memory; the same on all its ranks. About `seconds`.
/// `slowdown`: emulation, of this rank; its communicator makes it so much slower already.
[[nodiscard]] MeasuredJitter measure_jitter(const ProbeMachine& machine, Communicator& group,
                                            double seconds, double slowdown = 1);

}  // namespace t3d
