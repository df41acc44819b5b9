// One simulated life of a job, from its submission until it has trained its samples: discrete
// events of groups of nodes (node_source.hpp), decisions by decide_size(). Times are exact between
// events; the step is a rate, and what is left of a step when its nodes go is done again.
//
//   loss of a node in use   recovery "requeue": the job's nodes are given back; queue, restart.
//                           "in place": with copies the step under way is lost, without the state
//                           of the newest checkpoint is loaded; then decide_size()
//   warned loss (grace)     with enough grace nothing is lost: a step is ended, and without copies
//   a
//                           checkpoint written
//   crash                   as a loss of which the node stays
//   the job is preempted    with enough grace a checkpoint; queue, restart
//   walltime                a checkpoint before it; queue, restart
//   checkpoint              training stands still for the stall; it counts once it is written, and
//                           never if nodes go before
#pragma once
#include <array>
#include <vector>

#include "forecast/simulate/node_source.hpp"
#include "forecast/simulate/size_rule.hpp"

namespace t3d {

/// Where the time of a life goes; together all of it.
enum class LifePart : int { useful, lost, checkpoint, reshape, restart, waiting, queue, count_ };
inline constexpr std::size_t kLifeParts = static_cast<std::size_t>(LifePart::count_);
template <>
struct Words<LifePart> {
  static constexpr std::array<std::string_view, kLifeParts> all{
      "useful", "lost", "checkpoint", "reshape", "restart", "waiting", "queue"};
};

struct JobOutcome {
  bool finished = false;  // false: not within the limits
  double seconds = 0, cost = 0, node_seconds = 0, samples = 0;
  std::array<double, kLifeParts> parts{};
  index_t events = 0, losses = 0, roll_backs = 0, reshapes = 0, restarts = 0, checkpoints = 0,
          lives = 0;
  friend bool operator==(const JobOutcome&, const JobOutcome&) = default;
  [[nodiscard]] double part(LifePart which) const { return parts[static_cast<std::size_t>(which)]; }
};

/// What a life looked like, for a plot.
struct Timeline {
  struct Stretch {  // up to the next one
    double seconds = 0;
    LifePart part = LifePart::queue;
    int size = -1;
    index_t here = 0, used = 0;  // nodes
  };
  struct LostSpan {
    double from = 0, to = 0;  // of its training nothing counts
  };
  std::vector<Stretch> stretches;
  std::vector<LostSpan> lost;
  std::vector<double> checkpoints;  // when they began
  double end = 0;
};

struct LifeLimits {
  double seconds = 3e8;
  index_t events = 20'000'000;
};

/// What belongs to one run of many.
struct LifeDraw {
  std::uint64_t seed = 1;
  index_t run = 0;
  /// Nodes come and go by a trace: how often is not known beforehand, only seen.
  bool replayed = false;
};

/// Nodes by class that the job asks for: those of its largest sizes and the spares, at most the
/// class's.
[[nodiscard]] std::vector<index_t> wanted_nodes(const SimulatedJob& job,
                                                const SimulationPolicy& policy);

/// `timeline`: filled where it is given.
[[nodiscard]] JobOutcome simulate_life(const SimulatedJob& job, const SimulationPolicy& policy,
                                       NodeSource& source, const LifeDraw& draw,
                                       const LifeLimits& limits = {}, Timeline* timeline = nullptr);

/// sqrt(2 stall / rate): the interval of least overhead for this many roll-backs per hour (Young
/// 1974); between `least_seconds` and 6 h.
[[nodiscard]] double best_interval(double stall_seconds, double roll_backs_per_hour,
                                   double least_seconds);

}  // namespace t3d
