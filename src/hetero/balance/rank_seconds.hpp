// What a rank's report of a step says of its part of the batch: its seconds, and which of them do
// not depend on its sequences. Pure arithmetic.
#pragma once
#include "core/run_event.hpp"
#include "hetero/cost/flops.hpp"

namespace t3d {

/// Of one rank in a step; `fixed`: what does not depend on its sequences.
struct RankWork {
  StepWork all, fixed;
};

struct RankSeconds {
  double all = 0, fixed = 0;
};

/// `crowded`: the rank shares cores, so that only its CPU time says how fast it is. Products and
/// attention depend on the sequences, Newton-Schulz does not, streamed operators in part.
[[nodiscard]] RankSeconds rank_seconds(const RankTimes& times, const RankWork& work, bool crowded);

}  // namespace t3d
