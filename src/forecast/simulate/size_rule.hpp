// The rule by which a job that can change its size decides: go on, shrink, wait for nodes, grow
// back, put a spare in, write a checkpoint, stop. A pure function of what is known at that moment,
// for the simulation and for runs alike: it knows no trace, no clock and no random number. Times in
// seconds; estimates may be infinite.
#pragma once
#include <limits>
#include <span>
#include <string>

#include "core/types.hpp"
#include "forecast/simulate/simulated_job.hpp"

namespace t3d {

inline constexpr double kNoTime = std::numeric_limits<double>::infinity();
/// A job grows only for a gain of more than this part of what it does without.
inline constexpr double kGrowthMargin = 0.02;

/// What is known. `sizes`, `here` and their order: as SimulatedJob's.
struct SizeQuestion {
  std::span<const JobSize> sizes;
  std::span<const index_t> here;  // healthy nodes by class, spares among them
  int current = -1;               // the size now, or the last one; -1: none yet
  /// Its ranks stand still: a node of them is lost, or the job has just begun.
  bool interrupted = false;
  double samples_left = 0;
  Sizing sizing = Sizing::rule;

  double losses_per_hour = 0;            // expected, of the nodes that the current size uses
  double next_return_seconds = kNoTime;  // expected, until the next node comes
  double reshape_seconds = 0;            // to any other size
  double same_size_seconds = 0;          // to the current size, on other nodes
  double requeue_seconds = kNoTime;      // stop, wait in the queue, start again

  double left_seconds = kNoTime;     // of the walltime
  double reserve_seconds = 0;        // that a stop in order needs of them
  double warning_seconds = kNoTime;  // until nodes go that are known to go
  double save_seconds = 0;           // until a checkpoint begun now counts
  bool copies = false;               // the loss of a node costs one step at most
  double unsaved_seconds = 0;        // of training since the last checkpoint
  double since_checkpoint_seconds = 0, interval_seconds = kNoTime;
};

enum class SizeAction : int { go_on, checkpoint, use_spare, shrink, grow, wait, stop };

struct SizeDecision {
  SizeAction action = SizeAction::go_on;
  int size = -1;  // from now on, or to wait for; -1: none
  /// Ask again then, if nothing has happened.
  double look_again_seconds = kNoTime;
  const char* reason = "";
};

/// Nodes of `size` are here.
[[nodiscard]] bool is_possible(const JobSize& size, std::span<const index_t> here);

/// In this order:
///   stop        the walltime left is no more than the reserve
///   checkpoint  nodes are about to go, without copies, and there is time to save; or it is due
///   interrupted use a spare: the size is possible on the nodes that are here; else shrink or wait,
///               whichever trains more samples until the missing nodes are back and for as long as
///               the job then goes on undisturbed; where no size is possible wait, or stop if the
///               queue is faster
///   grow        when the samples gained until the next loss (or the end) are worth the reshape,
///               by more than kGrowthMargin, and when no node is expected so soon that one reshape
///               for both trains more
[[nodiscard]] SizeDecision decide_size(const SizeQuestion& question);

template <>
struct Words<SizeAction> {
  static constexpr std::array<std::string_view, 7> all{"go on", "checkpoint", "use spare", "shrink",
                                                       "grow",  "wait",       "stop"};
};

}  // namespace t3d
