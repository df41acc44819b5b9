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

void add_rank_key(const Plan& plan, const Coord& at, index_t sequences, CostMemo& memo,
                  SlabKeys::Key& key) {
  const ReplicaPlan& replica = plan.replica(at.d);
  const auto& [p, q, r] = replica.cuboid;
  const index_t rows = sequences * plan.model.context, groups = replica.groups.size(at.j);
  const index_t vocab = replica.vocab.size(at.j);
  key.insert(key.end(), {groups, replica.ffn.size(at.j), vocab, replica.hidden.size(at.k),
                         even_size(rows, q, at.j), even_size(rows, r, at.k),
                         even_size(rows, r, at.k, plan.model.context), even_size(groups, r, at.k),
                         even_size(vocab, r, at.k)});
  if (plan.optimizer != OptimizerKind::muon) return;
  const index_t number = (at.i * q + at.j) * r + at.k;
  const MatrixOwners& owners = memo.owners(plan.model, replica);
  const bool alike =
      replica.whole.empty() && owners.owned[static_cast<std::size_t>(number)].empty();
  key.push_back(alike ? -1 : number);
}

}  // namespace t3d
