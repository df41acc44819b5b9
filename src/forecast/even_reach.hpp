// Reach in closed form, where replicas are alike, nodes are alike and ranks are numbered by an
// order of axes: the members of every group lie at few distances, so those on a node or under a
// switch are counted without a look at each. JobNodes::reach() says the same of any plan. Internal
// to hetero/forecast.
#pragma once
#include <array>
#include <vector>

#include "forecast/axis_order.hpp"

namespace t3d {

class EvenReach {
 public:
  /// Nothing where the plan's replicas, nodes or places are not such.
  [[nodiscard]] static std::optional<EvenReach> of(const Plan& plan, const JobNodes& nodes);
  /// Of a plan of one cuboid on nodes of one class, with the places of this order instead of its
  /// own. Both must outlive it.
  EvenReach(const Plan& plan, const JobNodes& nodes, const AxisOrder& order);
  /// Plan::place of the order.
  [[nodiscard]] std::vector<int> place() const { return place_of(order_, extents_); }
  [[nodiscard]] index_t rank_of(const Coord& coord) const;
  /// 0 <= world rank < ranks of all replicas.
  [[nodiscard]] Reach reach(index_t world_rank, Group group) const;

 private:
  /// Members at one distance, or runs of them.
  struct Line {
    index_t stride, count;
  };
  struct Range {
    index_t from, end;  // world ranks
  };
  /// The ranks of one group: outer lines first, each step of one longer than all that are inside.
  struct Members {
    index_t first, count;
    const std::vector<Line>* lines;
    [[nodiscard]] index_t before(index_t rank) const;
    [[nodiscard]] index_t in(const Range& range) const {
      return before(range.end) - before(range.from);
    }
  };
  [[nodiscard]] Members members(index_t world_rank, Group group) const;
  [[nodiscard]] Coord coord_of(index_t world_rank) const;
  /// Ranks that the level has together with this one.
  [[nodiscard]] Range range(const Level& level, index_t world_rank) const;

  const Plan* plan_;
  const JobNodes* nodes_;
  AxisOrder order_;
  AxisExtents extents_;
  Strides strides_;
  index_t ranks_per_node_;
  std::array<std::vector<Line>, static_cast<std::size_t>(Group::count_)> lines_;  // by group
  std::vector<std::size_t> levels_;  // innermost first; of two alike the class's own
};

}  // namespace t3d
