// Reach in closed form, where replicas are alike, nodes are alike and world rank = slot: the
// members of every group lie in runs at one distance, so those on a node or under a switch are
// counted without a look at each. JobNodes::reach() says the same of any plan. Internal to
// hetero/forecast.
#pragma once
#include <vector>

#include "hetero/forecast/job_nodes.hpp"

namespace t3d {

class EvenReach {
 public:
  [[nodiscard]] static bool fits(const Plan& plan, const JobNodes& nodes);
  /// Both must outlive it. fits().
  EvenReach(const Plan& plan, const JobNodes& nodes);
  /// Of the rank in a slot of the plan, 0 <= slot < ranks of all replicas.
  [[nodiscard]] Reach reach(index_t slot, Group group) const;

 private:
  /// `runs` runs of `length` ranks, the first at `first`, each `distance` >= length after the one
  /// before.
  struct Members {
    index_t first, runs, distance, length;
    [[nodiscard]] index_t before(index_t rank) const;
    [[nodiscard]] index_t in(index_t from, index_t end) const { return before(end) - before(from); }
  };
  struct Range {
    index_t from, end;  // world ranks
  };
  [[nodiscard]] Members members(index_t slot, Group group) const;
  [[nodiscard]] Coord coord_of(index_t slot) const;
  /// Ranks that the level has together with this one.
  [[nodiscard]] Range range(const Level& level, index_t slot) const;

  const Plan& plan_;
  const JobNodes& nodes_;
  index_t p_, q_, r_, replicas_, ranks_per_node_;
  std::vector<std::size_t> levels_;  // innermost first; of two alike the class's own
};

}  // namespace t3d
