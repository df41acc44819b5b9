// Slabs alike: what a slab's ranks compute and hold depends on few numbers, so that a plan of many
// thousand ranks has few different slabs. Internal to the planner.
#pragma once
#include <vector>

#include "core/plan.hpp"

namespace t3d {

class SlabKeys {
 public:
  using Key = std::vector<index_t>;

  explicit SlabKeys(const Plan& plan);
  /// Slabs of equal keys have equal work and memory at equal (j, k), but for a few elements of
  /// shards at rest. Muon's matrices belong to single ranks.
  [[nodiscard]] Key key(index_t d, index_t i) const;

 private:
  const Plan& plan_;
  std::vector<index_t> cuts_;  // by replica: number of its cut of the parameters
};

}  // namespace t3d
