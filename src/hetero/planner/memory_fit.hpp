// Whether a plan fits into the ranks' memory, and what to change where it does not: shards at rest
// move along the token axis to where memory is free, apart from who computes; what then is still
// too much are sequences.
#pragma once
#include <string>
#include <vector>

#include "hetero/cost/memory.hpp"
#include "hetero/speed/speeds.hpp"

namespace t3d {

/// Of a slab, the rank that lacks most.
struct MemoryShortage {
  std::size_t slab = 0;  // replica after replica
  Coord coord;
  int rank = 0;  // of the world
  MemoryCost cost;
  index_t needed = 0, room = 0;  // bytes
  /// "rank 3 at d=0 i=1 j=0 k=0 needs 95 MiB (weights 12 MiB + ...) and has 64 MiB"
  [[nodiscard]] std::string text() const;
};
/// In the order of slabs; none where everything fits. A rank with free_bytes = 0 has enough.
[[nodiscard]] std::vector<MemoryShortage> memory_shortages(const Plan& plan, const Speeds& speeds);

/// Sequences of a step with which the rank of each shortage fits, below the `counts` that the slabs
/// have now; negative where it does not fit with any.
[[nodiscard]] std::vector<index_t> sequences_that_fit(const Plan& plan,
                                                      const std::vector<MemoryShortage>& shortages,
                                                      const std::vector<index_t>& counts);

/// Shards at rest of all replicas of this cuboid, relative, as even as the ranks' free memory
/// allows: one division for all, since replicas that are cut alike aggregate with fewer messages.
/// Where memory is too small altogether, in proportion to it.
[[nodiscard]] std::vector<index_t> storage_by_memory(const Plan& plan, const Speeds& speeds,
                                                     const Cuboid& cuboid);

}  // namespace t3d
