// What a step's messages cost in seconds: the bytes that a rank sends (hetero/cost/traffic.hpp)
// and the number of collectives, at the prices of links. A prediction for choosing between plans:
// links are taken as not shared.
#pragma once
#include "hetero/cost/exposed_messages.hpp"
#include "hetero/speed/speeds.hpp"

namespace t3d {

/// Which groups of a replica have members on different nodes.
struct NodeCrossings {
  bool i = false, j = false, k = false;  // lines along this axis
  bool world = false;                    // ranks of different replicas, or any
  friend auto operator<=>(const NodeCrossings&, const NodeCrossings&) = default;
};

struct MessageSeconds {
  WeightMessages weights;  // over i, and over the replicas
  double activations = 0;  // inside a slab: the next product waits for them
  double update = 0;       // optimizer, report
};
/// Of the rank at `coord` in one step.
[[nodiscard]] MessageSeconds message_seconds(const Plan& plan, const Coord& coord,
                                             const Speeds& speeds, const NodeCrossings& crossings,
                                             const CostMemoPtr& memo = nullptr);

}  // namespace t3d
