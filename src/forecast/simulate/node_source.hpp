// Where a simulated job's nodes come from and go to: sampled from the hazards of their classes, or
// replayed from a trace.
#pragma once
#include <memory>
#include <vector>

#include "forecast/simulate/node_trace.hpp"
#include "forecast/simulate/simulated_job.hpp"

namespace t3d {

struct NodeEvent {
  std::size_t kind = 0;     // class
  index_t change = 0;       // +n come, -n are lost
  double born_seconds = 0;  // of lost ones
};

class NodeSource {
 public:
  virtual ~NodeSource() = default;
  /// The job gets its nodes at `now`: those that are there then. Appends them as coming ones.
  virtual void begin(double now, std::vector<NodeEvent>& events) = 0;
  /// When nodes come or go the next time; infinity: never.
  [[nodiscard]] virtual double next() const = 0;
  /// What happens at next(); appended.
  virtual void take(std::vector<NodeEvent>& events) = 0;
  /// Nobody comes or goes while the job holds no nodes, or what does makes no difference.
  virtual void release() = 0;
};

/// Of each class `wanted` nodes at begin(), new ones; a lost node
/// is replaced after an exponential time. Exact for independent lifetimes: the losses of n nodes of
/// one age are order statistics of their hazard. `seed` and `run` fix every draw.
[[nodiscard]] std::unique_ptr<NodeSource> sampled_nodes(const SimulatedJob& job,
                                                        std::vector<index_t> wanted,
                                                        std::uint64_t seed, index_t run);

/// Nodes of class 0 as `trace` has them, of each other class `wanted` ones that stay. From
/// `offset_seconds` of the trace on; behind its end it begins anew: then nodes of class 0 come or
/// go so that as many are there as at its beginning. Of more than wanted[0] nodes only so many are
/// given (the youngest are left out). The trace must outlive the source.
[[nodiscard]] std::unique_ptr<NodeSource> replayed_nodes(const NodeTrace& trace,
                                                         std::vector<index_t> wanted,
                                                         double offset_seconds);

}  // namespace t3d
