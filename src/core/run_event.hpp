// The words that the trainer and whoever steers the run share: what a step did, and what comes
// next.
#pragma once
#include <limits>
#include <vector>

#include "core/types.hpp"

namespace t3d {

/// Why a rank would like the run to stop; the bits are or-ed over all ranks in the step's
/// reduction.
enum StopRequest : int { kNoStop = 0, kStopSignal = 1 };

/// What one training step did; equal on all ranks but for `own_seconds`.
struct StepReport {
  index_t step = 0;  // steps done, this one included
  double loss = 0;   // mean over the target tokens of the whole batch
  double grad_norm = 0;
  double lr = 0;
  index_t tokens = 0;
  double seconds = 0;                                // wall time of this rank
  double own_seconds = 0;                            // without waiting for others
  double mean_own_seconds = 0, max_own_seconds = 0;  // of the step before, over ranks
  int stop_requests = kNoStop;                       // of any rank
  /// Where aggregation knows (adasum by gram or flat); else not numbers.
  double gain = std::numeric_limits<double>::quiet_NaN();             // mean gradient to adasum
  double noise_sequences = std::numeric_limits<double>::quiet_NaN();  // noise scale
  std::vector<int> left_out;  // leaves with samples whose gradient was not finite
  double loss_scale = 1;
  bool skipped = false;  // no finite gradient at this loss scale: the weights stayed
};

enum class Decision { go_on, checkpoint, stop };

}  // namespace t3d
