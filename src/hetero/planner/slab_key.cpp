#include "hetero/planner/slab_key.hpp"

namespace t3d {

SlabKeys::SlabKeys(const Plan& plan) : plan_(plan), cuts_{0} {
  for (std::size_t d = 1; d < plan.replicas.size(); ++d)
    cuts_.push_back(cuts_.back() + (plan.replicas[d].cut_like(plan.replicas[d - 1]) &&
                                            plan.replicas[d].whole == plan.replicas[d - 1].whole
                                        ? 0
                                        : 1));
}

SlabKeys::Key SlabKeys::key(index_t d, index_t i) const {
  const ReplicaPlan& replica = plan_.replica(d);
  Key key{cuts_[static_cast<std::size_t>(d)], replica.storage.size(i),
          plan_.optimizer == OptimizerKind::muon ? i : 0};
  for (const auto& leaf : replica.leaves)
    for (const index_t micro : leaf) {
      key.push_back(micro);
      for (const Partition& cut : replica.tokens)
        if (cut.length() == micro) key.push_back(cut.size(i));
    }
  return key;
}

}  // namespace t3d
