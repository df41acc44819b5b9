#include "hetero/planner/memory_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "hetero/planner/slab_key.hpp"

namespace t3d {
namespace {

constexpr index_t kStorageSteps = 4096;  // of a fibre's shards
constexpr index_t kBeyond = 200;         // part of a rank's memory

std::string mib(index_t bytes) {
  constexpr index_t kShown = 1024;
  return fmt::format("{:.4g} MiB", static_cast<double>(bytes < kShown ? 0 : bytes) / 1048576);
}

index_t needed_bytes(const MemoryCost& cost, const RankSpeed& rank) {
  return needed_bytes(cost, !rank.device.empty() && rank.device != "cpu");
}

/// memory_cost() of a plan's ranks, once for those alike.
class CostTable {
 public:
  explicit CostTable(const Plan& plan) : plan_(plan), keys_(plan) {}

  /// The ranks of one slab whose memory is known: `visit(coord, world rank, cost)`.
  template <class Visit>
  void for_slab(const Speeds& speeds, index_t d, index_t i, std::size_t slot, const Visit& visit) {
    const auto& [p, q, r] = plan_.replica(d).cuboid;
    std::vector<MemoryCost>* known = nullptr;
    for (index_t j = 0; j < q; ++j)
      for (index_t k = 0; k < r; ++k, ++slot) {
        const int rank = plan_.place.empty() ? static_cast<int>(slot) : plan_.place[slot];
        if (speeds.ranks[static_cast<std::size_t>(rank)].free_bytes == 0) continue;
        if (known == nullptr) known = &costs_[keys_.key(d, i)];
        if (known->empty()) known->resize(static_cast<std::size_t>(q * r));
        MemoryCost& cost = (*known)[static_cast<std::size_t>(j * r + k)];
        if (cost.live_peak == 0) cost = memory_cost(plan_, {d, i, j, k});
        visit(Coord{d, i, j, k}, rank, cost);
      }
  }
  /// All slabs: `visit(slab, d, i, first slot)`.
  template <class Visit>
  void for_all(const Visit& visit) const {
    std::size_t slab = 0, slot = 0;
    for (index_t d = 0; d < std::ssize(plan_.replicas); ++d) {
      const auto& [p, q, r] = plan_.replica(d).cuboid;
      for (index_t i = 0; i < p; ++i, ++slab, slot += static_cast<std::size_t>(q * r))
        visit(slab, d, i, slot);
    }
  }

 private:
  const Plan& plan_;
  SlabKeys keys_;
  std::map<SlabKeys::Key, std::vector<MemoryCost>> costs_;  // by (j, k), where asked for
};

/// All cuts of tokens leave slab i empty.
void empty_slab(ReplicaPlan& replica, index_t i) {
  for (Partition& cut : replica.tokens) {
    std::vector<index_t> sizes = cut.sizes();
    const auto at = static_cast<std::size_t>(i);
    sizes[i == 0 ? sizes.size() - 1 : 0] += sizes[at];
    sizes[at] = 0;
    cut = Partition::from_sizes(cut.name(), sizes);
  }
}

/// What the shards at rest of a whole fibre need, found by a change of their sizes.
double bytes_of_fibre(const Plan& plan, index_t d) {
  const auto parts = static_cast<std::size_t>(plan.replica(d).cuboid[0]);
  const auto with_first = [&](index_t size) {
    Plan changed = plan;
    std::vector<index_t> sizes(parts, 1);
    sizes.front() = size;
    for (ReplicaPlan& replica : changed.replicas)
      if (replica.cuboid == plan.replica(d).cuboid)
        replica.storage = Partition::from_sizes("storage", sizes);
    const MemoryCost cost = memory_cost(changed, {d, 0, 0, 0});
    return static_cast<double>(cost.tensors_peak + cost.messages);
  };
  const auto others = static_cast<double>(parts - 1);
  return (with_first(3) - with_first(1)) / (3 / (3 + others) - 1 / (1 + others));
}

/// Largest piece minimal under the limits, sum 1: the smaller of limit and a common level.
std::vector<double> filled(const std::vector<double>& limits) {
  const double all = std::accumulate(limits.begin(), limits.end(), 0.0);
  std::vector<double> parts = limits;
  if (all <= 1) {
    for (double& part : parts) part = all > 0 ? part / all : 1 / static_cast<double>(parts.size());
    return parts;
  }
  double low = 0, high = 1;
  constexpr int kHalvings = 50;
  for (int step = 0; step < kHalvings; ++step) {
    const double level = (low + high) / 2;
    double sum = 0;
    for (const double limit : limits) sum += std::min(limit, level);
    (sum < 1 ? low : high) = level;
  }
  for (double& part : parts) part = std::min(part, high);
  return parts;
}

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
  table.for_all([&](std::size_t slab, index_t d, index_t i, std::size_t slot) {
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

std::vector<index_t> sequences_that_fit(const Plan& plan,
                                        const std::vector<MemoryShortage>& shortages,
                                        const std::vector<index_t>& counts) {
  const SlabKeys keys(plan);
  std::map<std::array<std::vector<index_t>, 2>, index_t> without;  // tensors by slab and (j, k)
  std::vector<index_t> fits;
  for (const MemoryShortage& shortage : shortages) {
    const Coord& at = shortage.coord;
    const index_t now = counts[shortage.slab];
    fits.push_back(now - 1);
    if (now == 0 || plan.replica(at.d).cuboid[0] == 1) continue;
    const auto [entry, is_new] = without.try_emplace({keys.key(at.d, at.i), {at.j, at.k}});
    if (is_new) {
      Plan changed = plan;
      empty_slab(changed.replicas[static_cast<std::size_t>(at.d)], at.i);
      entry->second = memory_cost(changed, at).tensors_peak;
    }
    const index_t least = entry->second + shortage.needed - shortage.cost.tensors_peak;
    const double each = static_cast<double>(shortage.needed - least) / static_cast<double>(now);
    const auto fit = static_cast<index_t>(static_cast<double>(shortage.room - least) / each);
    fits.back() = least > shortage.room ? -1 : std::min(fit, now - 1);
  }
  return fits;
}

std::vector<index_t> storage_by_memory(const Plan& plan, const Speeds& speeds,
                                       const Cuboid& cuboid) {
  std::vector<double> limits(static_cast<std::size_t>(cuboid[0]), 1.0);
  CostTable table(plan);
  double fibre = 0;
  table.for_all([&](std::size_t, index_t d, index_t i, std::size_t slot) {
    const ReplicaPlan& replica = plan.replica(d);
    if (replica.cuboid != cuboid) return;
    if (fibre == 0) fibre = bytes_of_fibre(plan, d);
    const double share = static_cast<double>(replica.storage.size(i)) /
                         static_cast<double>(replica.storage.length());
    double& limit = limits[static_cast<std::size_t>(i)];
    table.for_slab(speeds, d, i, slot, [&](const Coord&, int rank, const MemoryCost& cost) {
      const RankSpeed& speed = speeds.ranks[static_cast<std::size_t>(rank)];
      const index_t needed = needed_bytes(cost, speed);
      index_t left = speed.free_bytes - needed;
      // What peaks and blocks are rounded to is not in the slope: a little further than needed.
      if (left < 0) left -= needed / kBeyond;
      limit = std::clamp(share + static_cast<double>(left) / fibre, 0.0, limit);
    });
  });
  std::vector<index_t> sizes;
  const std::vector<double> parts = filled(limits);
  // Rounded down where the limit binds.
  for (const double part : parts)
    sizes.push_back(static_cast<index_t>(part * static_cast<double>(kStorageSteps)));
  const auto largest = std::max_element(sizes.begin(), sizes.end());
  *largest += kStorageSteps - std::accumulate(sizes.begin(), sizes.end(), index_t{0});
  return sizes;
}

}  // namespace t3d
