#include "hetero/planner/slab_memory.hpp"

#include <algorithm>

namespace t3d {
namespace {

Partition even_storage(index_t parts) { return Partition::even("storage", parts, parts); }

}  // namespace

SlabMemory::SlabMemory(const Plan& plan) : probe_(plan) {
  const SlabKeys keys(plan);
  std::map<std::pair<index_t, Key>, int> kinds;
  for (index_t d = 0; d < std::ssize(plan.replicas); ++d) {
    ReplicaPlan& replica = probe_.replicas[static_cast<std::size_t>(d)];
    // Of many micro-batches alike the third adds nothing.
    constexpr index_t kMicros = 3;
    Key passes;
    for (const auto& leaf : replica.leaves) passes.push_back(std::min(std::ssize(leaf), kMicros));
    kind_.push_back(
        kinds.try_emplace({keys.cut(d), passes}, static_cast<int>(kinds.size())).first->second);
    passes_.push_back(std::move(passes));
    replica.storage = even_storage(replica.cuboid[0]);
    clear(replica);
  }
}

void SlabMemory::clear(ReplicaPlan& replica) {
  for (auto& leaf : replica.leaves) leaf.clear();
  replica.tokens = {Partition::even("tokens", replica.cuboid[0], replica.cuboid[0])};
}

MemoryCost SlabMemory::cost(const Coord& at, index_t sequences) {
  ReplicaPlan& replica = probe_.replicas[static_cast<std::size_t>(at.d)];
  const Key& passes = passes_[static_cast<std::size_t>(at.d)];
  const index_t parts = replica.cuboid[0];
  if (sequences > 0) {
    for (std::size_t leaf = 0; leaf < passes.size(); ++leaf)
      replica.leaves[leaf].assign(static_cast<std::size_t>(passes[leaf]), parts * sequences);
    replica.tokens = {Partition::even("tokens", parts * sequences, parts)};
  } else if (parts > 1) {
    // The others of the fibre have samples: the rank takes part in all of their messages.
    std::vector<index_t> sizes(static_cast<std::size_t>(parts), 1);
    sizes[static_cast<std::size_t>(at.i)] = 0;
    for (std::size_t leaf = 0; leaf < passes.size(); ++leaf)
      replica.leaves[leaf].assign(static_cast<std::size_t>(passes[leaf]), parts - 1);
    replica.tokens = {Partition::from_sizes("tokens", sizes)};
  }
  const MemoryCost result = memory_cost(probe_, at, memo_);
  clear(replica);
  return result;
}

index_t SlabMemory::needed(const Coord& at, index_t sequences, bool on_gpu) {
  Key key{kind_[static_cast<std::size_t>(at.d)], sequences};
  add_rank_key(probe_, at, sequences, *memo_, key);
  const auto [entry, is_new] = costs_.try_emplace(std::move(key));
  if (is_new) entry->second = cost(at, sequences);
  return needed_bytes(entry->second, on_gpu);
}

bool SlabMemory::owns_matrices(index_t d, index_t i) {
  if (probe_.optimizer != OptimizerKind::muon) return false;
  const auto& [p, q, r] = probe_.replica(d).cuboid;
  const MatrixOwners& owners = memo_->owners(probe_.model, probe_.replica(d));
  const auto first = owners.owned.begin() + i * q * r;
  return std::any_of(first, first + q * r, [](const auto& owned) { return !owned.empty(); });
}

StorageCurve SlabMemory::storage(const Coord& at, index_t sequences, bool on_gpu) const {
  // A rank's shards depend on its part of the fibre alone, so fewer slabs say as much as many.
  // Replicas of one cuboid stay alike, or they would aggregate in another way.
  constexpr index_t kFewSlabs = 8;
  const Cuboid cuboid = probe_.replica(at.d).cuboid;
  const index_t parts = cuboid[0], few = std::min(parts, kFewSlabs);
  SlabMemory small = *this;
  small.memo_ = std::make_shared<CostMemo>();
  for (ReplicaPlan& replica : small.probe_.replicas)
    if (replica.cuboid == cuboid) {
      replica.cuboid[0] = few;
      replica.whole.clear();
    }
  Coord last = at;
  last.i = few - 1;
  const auto bytes_with = [&](index_t size) {
    std::vector<index_t> sizes(static_cast<std::size_t>(few), parts - 1);
    sizes.back() = size * (few - 1);
    for (ReplicaPlan& replica : small.probe_.replicas)
      if (replica.cuboid == small.probe_.replica(at.d).cuboid)
        replica.storage = Partition::from_sizes("storage", sizes);
    return static_cast<double>(needed_bytes(small.cost(last, sequences), on_gpu));
  };
  StorageCurve curve;
  const double even = bytes_with(1);
  for (const index_t size : {0, 1, 2, 4})
    curve.add(static_cast<double>(size) / static_cast<double>(size + parts - 1),
              bytes_with(size) - even);
  return curve;
}

void StorageCurve::add(double part, double bytes) {
  parts_.push_back(part);
  bytes_.push_back(bytes_.empty() ? bytes : std::max(bytes, bytes_.back() + 1));
}

double StorageCurve::part(double bytes) const {
  if (bytes < bytes_.front()) return -1;
  std::size_t at = 1;
  while (at + 1 < bytes_.size() && bytes > bytes_[at]) ++at;
  return parts_[at - 1] +
         (bytes - bytes_[at - 1]) * (parts_[at] - parts_[at - 1]) / (bytes_[at] - bytes_[at - 1]);
}

}  // namespace t3d
