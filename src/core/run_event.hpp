// The words that the trainer and whoever steers the run have in common: what a step did
// (StepReport), and what comes next (Decision).
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "core/types.hpp"

namespace t3d {

/// What a rank would like to happen after the step; the bits of all ranks are or-ed.
enum RunFlag : unsigned {
  kNoFlag = 0,
  kStopAsked = 1U << 0,      // by a signal
  kCheckpointDue = 1U << 1,  // by the clock of rank 0
  kReshapeDue = 1U << 2,     // another plan waits
  kInterrupted = 1U << 3,    // the user asks to stop, for good: INT
  kStopFile = 1U << 4,       // likewise: a file in the run folder
  kTimeNear = 1U << 5,       // the time limit is so near that the run has to stop
  kReportDue = 1U << 6,      // somebody wants to see the tables of the end now
  kSaving = 1U << 7,         // no wish: a process beside the rank is at work for a checkpoint
};
inline constexpr int kRunFlags = 8;
inline constexpr unsigned kStopFlags = kStopAsked | kInterrupted | kStopFile | kTimeNear;
/// Another reason to stop, which no rank asks for: all see it in the same report.
inline constexpr unsigned kReplicasDiffer = 1U << kRunFlags;

/// What comes after a step; the same on all ranks, as it follows from the flags of all.
struct Decision {
  unsigned stop = kNoFlag;  // those of kStopFlags that ask for it, or kReplicasDiffer
  bool checkpoint = false, reshape = false, report = false;
};
[[nodiscard]] constexpr Decision decide(unsigned flags) {
  return {flags & kStopFlags, (flags & kCheckpointDue) != 0, (flags & kReshapeDue) != 0,
          (flags & kReportDue) != 0};
}

/// Where one rank's time of a step went, in seconds.
struct RankTimes {
  double own = 0;  // without waiting for others: matmul + attention + other
  /// Of it, what the thread had a core for: much less than `own` where others use the core too, or
  /// where a quota holds the rank back. 0 on GPUs.
  double cpu = 0;
  double matmul = 0, attention = 0, other = 0;
  double whole = 0;  // of `other`: Newton-Schulz of whole matrices (Muon)
  double step = 0;   // wall time of the step on this rank, with waiting
};

/// The step that times belong to.
struct MeasuredStep {
  index_t step = 0;
  index_t plan = 0;            // that it ran under: as StepReport::plan
  double seconds = 0;          // wall time on this rank
  std::vector<index_t> slabs;  // sequences by slab
  bool first = true;           // under its plan (fills caches), or without work: says little
};

/// What one training step did; equal on all ranks but for `seconds` and `own_seconds`.
struct StepReport {
  index_t step = 0;  // steps done, this one included
  index_t plan = 0;  // changes of plan that the trainer had seen before
  double loss = 0;   // mean over the target tokens of the whole batch; no number without any
  double grad_norm = 0;
  double lr = 0;
  index_t tokens = 0;
  index_t targets = 0;           // of them, targets that count
  double seconds = 0;            // wall time of this rank
  double own_seconds = 0;        // without waiting for others
  std::vector<RankTimes> times;  // of the step before, by rank of the job; may be empty
  MeasuredStep measured;         // the step of `times`
  unsigned flags = kNoFlag;      // of all ranks
  /// Adasum's length over the mean's; not a number with other aggregations.
  double gain = std::numeric_limits<double>::quiet_NaN();
  /// Of gradients of two or more leaves, else not numbers: |E g|^2, and the trace of the covariance
  /// of one sequence's gradient (estimates without bias: the signal may be below 0). Adasum by gram
  /// has exponential means of them.
  double gradient_signal = std::numeric_limits<double>::quiet_NaN();
  double gradient_noise = std::numeric_limits<double>::quiet_NaN();
  /// noise / signal of exponential means; not a number while that is not above 0.
  double noise_sequences = std::numeric_limits<double>::quiet_NaN();
  std::vector<int> left_out;  // leaves with samples whose gradient was not finite
  double loss_scale = 1;
  /// No finite gradient at this loss scale, or no target that counts: the weights stayed.
  bool skipped = false;
  std::uint64_t decision = 0;    // what start_step() was given, the same on all ranks; 0 = nothing
  bool replicas_differ = false;  // their weights before the step

  /// There are times, of a step under the plan of this one, and not of the first, which fills
  /// caches.
  [[nodiscard]] bool measures_plan() const {
    return !times.empty() && !measured.first && measured.plan == plan;
  }
  /// Over the ranks, of the step before; 0 where nothing is known yet.
  [[nodiscard]] double mean_own_seconds() const {
    double sum = 0;
    for (const RankTimes& rank : times) sum += rank.own;
    return times.empty() ? 0 : sum / static_cast<double>(times.size());
  }
  [[nodiscard]] double max_own_seconds() const {
    double most = 0;
    for (const RankTimes& rank : times) most = rank.own > most ? rank.own : most;
    return most;
  }
};

}  // namespace t3d
