// How many members of its groups a rank has on its own node, along each axis: what bounds know of
// an order of axes. Internal to hetero/forecast.
#pragma once
#include <map>
#include <vector>

#include "forecast/axis_order.hpp"

namespace t3d {

inline constexpr index_t kLooks = 64;
/// The ranks whose groups a forecast looks at, of so many that have places: all over the job, and
/// the same ones for every order of axes.
[[nodiscard]] std::vector<index_t> looked_at(index_t places, index_t looks = kLooks);

/// By Axis, the rank itself included.
using OnNode = std::array<index_t, 4>;

class NodeMembers {
 public:
  explicit NodeMembers(const JobNodes& nodes);
  /// Of the looked at rank that has fewest: its group waits for it. Nodes of one class.
  [[nodiscard]] OnNode fewest(const AxisOrder& order, const AxisExtents& extents);
  /// No order has more along any of the axes.
  [[nodiscard]] OnNode fewest_at_best(const AxisExtents& extents);
  /// Of the rank that has most, also of several classes: an estimate.
  [[nodiscard]] OnNode most(const AxisOrder& order, const AxisExtents& extents) const;

 private:
  [[nodiscard]] index_t fewest(index_t stride, index_t members);
  [[nodiscard]] index_t fewest_at_best(index_t members);

  index_t ranks_, ranks_per_node_;  // of the class with most
  std::vector<index_t> looks_;
  std::map<std::pair<index_t, index_t>, index_t> by_stride_;
  std::map<index_t, index_t> at_best_;
};

}  // namespace t3d
