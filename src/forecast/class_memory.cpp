#include "forecast/class_memory.hpp"

#include <algorithm>
#include <set>

#include "hetero/cost/memory.hpp"
#include "hetero/planner/slab_key.hpp"

namespace t3d {

std::vector<ClassMemory> class_memory(const Plan& plan, const JobNodes& nodes) {
  const std::vector<NodeClass>& classes = nodes.cluster().classes;
  std::vector<ClassMemory> most(classes.size());
  const auto memo = std::make_shared<CostMemo>();
  const SlabKeys keys(plan);
  std::set<SlabKeys::Key> seen;
  index_t slot = 0;
  for (index_t d = 0; d < std::ssize(plan.replicas); ++d) {
    const auto& [p, q, r] = plan.replica(d).cuboid;
    for (index_t i = 0; i < p; ++i) {
      const SlabKeys::Key slab = keys.key(d, i);
      const index_t sequences = plan.replica(d).tokens.back().size(i);
      for (index_t at = 0; at < q * r; ++at, ++slot) {
        const index_t rank = plan.place.empty() ? slot : plan.place[static_cast<std::size_t>(slot)];
        const std::size_t own = nodes.seat(rank).node_class;
        const Coord coord{d, i, at / r, at % r};
        SlabKeys::Key key = slab;
        key.push_back(static_cast<index_t>(own));
        add_rank_key(plan, coord, sequences, *memo, key);
        if (!seen.insert(std::move(key)).second) continue;
        const MemoryCost cost = memory_cost(plan, coord, memo);
        most[own].needed_bytes =
            std::max(most[own].needed_bytes, needed_bytes(cost, classes[own].device != "cpu"));
        most[own].parameters = std::max(most[own].parameters, parameters_at_rest(plan, coord));
      }
    }
  }
  return most;
}

}  // namespace t3d
