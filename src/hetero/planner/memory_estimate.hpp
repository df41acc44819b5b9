// About how many sequences memory lets the slabs of a mesh hold, without making its plan: to leave
// out meshes that cannot fit, and to know those that memory makes slow.
#pragma once
#include <map>
#include <vector>

#include "hetero/planner/build_plan.hpp"
#include "hetero/planner/rank_order.hpp"

namespace t3d {

class MemoryEstimate {
 public:
  MemoryEstimate(const PlanRecipe& recipe, const Speeds& speeds, const RankOrder& order);

  [[nodiscard]] bool known() const { return known_; }  // any rank's memory
  struct Limits {
    std::vector<index_t> most;  // sequences of a step by slab, filled in the order of ranks
    double missing_bytes = 0;   // > 0: the ranks together, or one of them, lack so much
  };
  /// Of `replicas` such cuboids. Rather too many sequences than too few.
  [[nodiscard]] Limits limits(index_t replicas, const Cuboid& cuboid);

 private:
  /// Bytes of a rank = fixed + sequences of its slab * each + its part of the fibre's shards.
  struct Needs {
    double fixed = 0, each = 0, fibre = 0;
  };
  [[nodiscard]] const Needs& needs(const Cuboid& cuboid);
  /// Smallest room among the ranks of each slab of that size.
  [[nodiscard]] const std::vector<double>& rooms(index_t size);

  const PlanRecipe& recipe_;
  bool known_ = false;
  std::vector<double> room_;  // by place in the order
  std::map<Cuboid, Needs> needs_;
  std::map<index_t, std::vector<double>> rooms_;  // by slab, for slabs of some size
};

}  // namespace t3d
