#include "hetero/planner/memory_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "hetero/planner/slab_key.hpp"

namespace t3d {
namespace {

std::string mib(index_t bytes) {
  constexpr index_t kShown = 1024;
  return fmt::format("{:.4g} MiB", static_cast<double>(bytes < kShown ? 0 : bytes) / 1048576);
}

bool is_on_gpu(const RankSpeed& rank) { return !rank.device.empty() && rank.device != "cpu"; }

index_t needed_bytes(const MemoryCost& cost, const RankSpeed& rank) {
  return needed_bytes(cost, is_on_gpu(rank));
}

/// Calls visit(slab, d, i, first slot) for all slabs.
template <class Visit>
void for_all_slabs(const Plan& plan, const Visit& visit) {
  std::size_t slab = 0, slot = 0;
  for (index_t d = 0; d < std::ssize(plan.replicas); ++d) {
    const auto& [p, q, r] = plan.replica(d).cuboid;
    for (index_t i = 0; i < p; ++i, ++slab, slot += static_cast<std::size_t>(q * r))
      visit(slab, d, i, slot);
  }
}

/// memory_cost() of a plan's ranks, once for those alike.
class CostTable {
 public:
  explicit CostTable(const Plan& plan) : plan_(plan), keys_(plan) {}

  /// The ranks of one slab whose memory is known: `visit(coord, world rank, cost)`.
  template <class Visit>
  void for_slab(const Speeds& speeds, index_t d, index_t i, std::size_t slot, const Visit& visit) {
    const ReplicaPlan& replica = plan_.replica(d);
    const auto& [p, q, r] = replica.cuboid;
    OfSlab* known = nullptr;
    for (index_t j = 0; j < q; ++j)
      for (index_t k = 0; k < r; ++k, ++slot) {
        const int rank = plan_.place.empty() ? static_cast<int>(slot) : plan_.place[slot];
        if (speeds.ranks[static_cast<std::size_t>(rank)].free_bytes == 0) continue;
        const Coord at{d, i, j, k};
        if (known == nullptr) known = &of_slab(at);
        const MemoryCost*& cost = known->by_place[static_cast<std::size_t>(j * r + k)];
        if (cost == nullptr) cost = &of_rank(at, *known);
        visit(at, rank, *cost);
      }
  }

 private:
  /// The slabs of one key.
  struct OfSlab {
    std::vector<const MemoryCost*> by_place;  // by (j, k); null where not asked for
    std::map<SlabKeys::Key, MemoryCost> costs;
  };
  OfSlab& of_slab(const Coord& at) {
    OfSlab& slab = slabs_[keys_.key(at.d, at.i)];
    const auto& [p, q, r] = plan_.replica(at.d).cuboid;
    if (slab.by_place.empty()) slab.by_place.resize(static_cast<std::size_t>(q * r));
    return slab;
  }
  const MemoryCost& of_rank(const Coord& at, OfSlab& slab) {
    SlabKeys::Key key;
    for (const Partition& cut : plan_.replica(at.d).tokens)
      add_rank_key(plan_, at, cut.size(at.i), *memo_, key);
    const auto [entry, is_new] = slab.costs.try_emplace(std::move(key));
    if (is_new) entry->second = memory_cost(plan_, at, memo_);
    return entry->second;
  }

  const Plan& plan_;
  SlabKeys keys_;
  CostMemoPtr memo_ = std::make_shared<CostMemo>();
  std::map<SlabKeys::Key, OfSlab> slabs_;
};

}  // namespace

std::string MemoryShortage::text() const {
  std::string parts;
  for (int kind = 0; kind < kMemoryKinds; ++kind)
    parts += fmt::format("{}{} {}", kind == 0 ? "" : " + ", name_of(static_cast<MemoryKind>(kind)),
                         mib(cost.by_kind[static_cast<std::size_t>(kind)]));
  return fmt::format("rank {} at d={} i={} j={} k={} needs {} ({} + rest {}) and has {}", rank,
                     coord.d, coord.i, coord.j, coord.k, mib(needed), parts,
                     mib(needed - cost.live_peak), mib(room));
}

std::vector<MemoryShortage> memory_shortages(const Plan& plan, const Speeds& speeds) {
  CostTable table(plan);
  std::vector<MemoryShortage> all;
  for_all_slabs(plan, [&](std::size_t slab, index_t d, index_t i, std::size_t slot) {
    MemoryShortage worst;
    table.for_slab(speeds, d, i, slot, [&](const Coord& at, int rank, const MemoryCost& cost) {
      const RankSpeed& speed = speeds.ranks[static_cast<std::size_t>(rank)];
      const index_t needed = needed_bytes(cost, speed), over = needed - speed.free_bytes;
      if (over > 0 && over > worst.needed - worst.room)
        worst = {slab, at, rank, cost, needed, speed.free_bytes};
    });
    if (worst.needed > 0) all.push_back(worst);
  });
  return all;
}

SlabRooms::SlabRooms(const Plan& plan, const Speeds& speeds, const std::vector<index_t>& reserved)
    : plan_(plan), memory_(plan) {
  std::map<std::pair<index_t, bool>, std::size_t> kinds;
  for_all_slabs(plan, [&](std::size_t slab, index_t d, index_t i, std::size_t slot) {
    const auto& [p, q, r] = plan.replica(d).cuboid;
    Slab own{{d, i, 0, 0}, 0, {}};
    for (index_t at = 0; at < q * r; ++at, ++slot) {
      const int rank = plan.place.empty() ? static_cast<int>(slot) : plan.place[slot];
      const RankSpeed& speed = speeds.ranks[static_cast<std::size_t>(rank)];
      if (speed.free_bytes > 0)
        own.rooms.push_back({at, speed.free_bytes - reserved[slab], is_on_gpu(speed)});
    }
    const auto [kind, is_new] =
        kinds.try_emplace({memory_.kind(d), memory_.owns_matrices(d, i)}, kinds.size());
    own.kind = kind->second;
    if (is_new) kinds_.push_back({own.at, {}, {}});
    slabs_.push_back(std::move(own));
  });
}

const std::vector<index_t>& SlabRooms::needed(Kind& kind, index_t micro, bool on_gpu) {
  std::vector<index_t>& bytes = kind.needed[{micro, on_gpu}];
  if (!bytes.empty()) return bytes;
  const auto& [p, q, r] = plan_.replica(kind.at.d).cuboid;
  for (index_t j = 0; j < q; ++j)
    for (index_t k = 0; k < r; ++k)
      bytes.push_back(memory_.needed({kind.at.d, kind.at.i, j, k}, micro, on_gpu));
  return bytes;
}

const StorageCurve& SlabRooms::storage(Kind& kind, bool on_gpu) {
  const auto [entry, is_new] = kind.storage.try_emplace(on_gpu);
  const ReplicaPlan& replica = plan_.replica(kind.at.d);
  if (is_new)
    entry->second = memory_.storage(
        kind.at, std::max<index_t>(replica.largest_micro() / replica.cuboid[0], 1), on_gpu);
  return entry->second;
}

double SlabRooms::left(std::size_t slab, index_t sequences) {
  const Slab& own = slabs_[slab];
  const ReplicaPlan& replica = plan_.replica(own.at.d);
  // Of the largest micro-batch, rounded up.
  const index_t all = replica.sequences(), micro = replica.largest_micro();
  const index_t here = all > 0 ? (sequences * micro + all - 1) / all : sequences;
  Kind& kind = kinds_[own.kind];
  double least = 1;
  for (const auto& [place, bytes, on_gpu] : own.rooms) {
    const index_t room = bytes - needed(kind, here, on_gpu)[static_cast<std::size_t>(place)];
    const double part = replica.cuboid[0] > 1
                            ? storage(kind, on_gpu).part(static_cast<double>(room))
                            : (room < 0 ? -1 : 1);
    least = std::min(least, part);
  }
  return least;
}

index_t SlabRooms::most(std::size_t slab, double part, index_t limit) {
  index_t fits = -1, above = limit + 1;
  for (index_t tried = 0; above - fits > 1; tried = fits + (above - fits) / 2)
    (left(slab, tried) >= part ? fits : above) = tried;
  return fits;
}

}  // namespace t3d
