// Slabs alike: what a slab's ranks compute and hold depends on few numbers, so that a plan of many
// thousand ranks has few different slabs; and a slab has few different ranks. Internal to the
// planner.
#pragma once
#include <vector>

#include "core/plan.hpp"
#include "hetero/cost/cost_memo.hpp"

namespace t3d {

class SlabKeys {
 public:
  using Key = std::vector<index_t>;

  explicit SlabKeys(const Plan& plan);
  /// Slabs of equal keys have equal work and memory at equal (j, k), but for a few elements of
  /// shards at rest. Muon's matrices belong to single ranks.
  [[nodiscard]] Key key(index_t d, index_t i) const;
  /// Number of a replica's cut of the parameters.
  [[nodiscard]] index_t cut(index_t d) const { return cuts_[static_cast<std::size_t>(d)]; }

 private:
  const Plan& plan_;
  std::vector<index_t> cuts_;  // by replica: number of its cut of the parameters
};

/// Ranks (j, k) of a slab that have equal keys hold and compute the same, but for a few elements of
/// shards at rest. `sequences`: of the slab, in a micro-batch.
void add_rank_key(const Plan& plan, const Coord& at, index_t sequences, CostMemo& memo,
                  SlabKeys::Key& key);

}  // namespace t3d
