#include "hetero/cost/cost_memo.hpp"

#include <algorithm>

#include "hetero/cost/update_traffic.hpp"
#include "tensor3d/parameters.hpp"

namespace t3d {

CostMemo::Shards::Shards(const Partition& storage)
    : storage_(storage), even_(stored_evenly(storage)) {}

const Partition& CostMemo::Shards::cut(index_t count, index_t beside) {
  const auto [entry, is_new] = cuts_.try_emplace({count, beside});
  if (is_new) entry->second = uneven_shards("shards", count, storage_, beside);
  return entry->second;
}

CostMemo::Shards& CostMemo::shards(const Partition& storage) {
  const auto known = std::find_if(shards_.begin(), shards_.end(), [&](const Shards& shards) {
    return std::ranges::equal(shards.storage_.offsets(), storage.offsets());
  });
  return known != shards_.end() ? *known : shards_.emplace_back(storage);
}

const FrozenBuckets& CostMemo::frozen(const ModelConfig& model) {
  if (!frozen_) frozen_.emplace(model);
  return *frozen_;
}

const MatrixOwners& CostMemo::owners(const ModelConfig& model, const ReplicaPlan& replica) {
  const auto& [p, q, r] = replica.cuboid;
  const auto [entry, is_new] = owners_.try_emplace({p * q * r, replica.whole});
  if (is_new) entry->second = muon_owners(hidden_matrices(model), replica);
  return entry->second;
}

}  // namespace t3d
