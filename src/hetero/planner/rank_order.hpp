// Which ranks get a place, and in which order: slots are filled in it, so ranks that meet at every
// product are about equally fast. Sorted consecutive groups have the largest sum of their slowest
// members' speeds. Pure arithmetic.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "hetero/speed/speeds.hpp"

namespace t3d {

/// World ranks with any speed and their seconds for the same work, the fastest first.
struct RankOrder {
  std::vector<int> ranks;
  std::vector<double> seconds;  // as `ranks`
};

/// Of the first rank that has no speed for some of this work: "rank 2 has none for attention".
[[nodiscard]] std::string lacking_speed(const Speeds& speeds, const StepWork& work);

/// Speeds within 1 % count as equal: such ranks stay in the order of their numbers.
[[nodiscard]] RankOrder order_by_speed(const Speeds& speeds, const StepWork& work);
/// The same, but ranks of a node stay together: nodes by the speed of their slowest rank. Equal to
/// order_by_speed() where every rank is a node, or all are on one.
[[nodiscard]] RankOrder order_by_node(const Speeds& speeds, const StepWork& work);

/// `planes` groups of `size` consecutive ranks of the order (the first planes * size of it), dealt
/// to `replicas` of equally many planes so that all replicas are about equally fast: in rounds, the
/// next `replicas` planes, the fastest to the slowest replica. World ranks by slot.
[[nodiscard]] std::vector<int> mixed_place(const RankOrder& order, index_t replicas,
                                           index_t planes_each, index_t size);

}  // namespace t3d
