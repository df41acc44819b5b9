// Orders of axes: how the ranks of a job, which follow the nodes, are numbered over the replicas
// and the axes of their cuboids. Along the first axis of an order the world rank grows by one from
// member to member, so that its groups lie on as few nodes as they can; along the last one members
// are farthest apart. The usual order is k, j, i, replicas: that of the slots of a plan. Any other
// one is a plan's `place`.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/plan.hpp"
#include "forecast/job_nodes.hpp"

namespace t3d {

/// Innermost first; only axes with more than one member.
using AxisOrder = std::vector<Axis>;

/// Along each axis (by Axis), from one member to the next: how much the world rank grows.
using Strides = std::array<index_t, 4>;

/// Members along each axis (by Axis).
using AxisExtents = std::array<index_t, 4>;
[[nodiscard]] constexpr AxisExtents axis_extents(index_t replicas, const Cuboid& cuboid) {
  return {cuboid[0], cuboid[1], cuboid[2], replicas};
}

[[nodiscard]] AxisOrder usual_order(const AxisExtents& extents);
/// 1 along axes that are not in the order.
[[nodiscard]] Strides strides_of(const AxisOrder& order, const AxisExtents& extents);
/// Plan::place; empty for the usual order.
[[nodiscard]] std::vector<int> place_of(const AxisOrder& order, const AxisExtents& extents);
/// Of a plan whose replicas have one cuboid and whose places are those of an order.
[[nodiscard]] std::optional<AxisOrder> order_of(const Plan& plan);
/// The same, where it is another than the usual one.
[[nodiscard]] std::optional<AxisOrder> other_order_of(const Plan& plan);
/// "j k d"
[[nodiscard]] std::string order_text(const AxisOrder& order);

/// The orders that differ on nodes of one class: two by which every group of every rank reaches its
/// members alike are one.
class DistinctOrders {
 public:
  explicit DistinctOrders(const JobNodes& nodes);
  /// The usual one first, which stands for all that are like it.
  [[nodiscard]] std::vector<AxisOrder> of(const AxisExtents& extents) const;

 private:
  /// Where ranks that follow each other are parted: at multiples of `inner`, and so that ranks
  /// `outer` apart are never together. Both are the size of the part where sizes divide each other.
  struct Edge {
    index_t inner, outer;
  };
  using Key = std::array<index_t, 4>;
  [[nodiscard]] Key key(const AxisOrder& order, const AxisExtents& extents) const;

  std::vector<Edge> edges_;  // of nodes, and of the levels that have a part of the job
};

}  // namespace t3d
