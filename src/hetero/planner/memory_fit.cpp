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

std::string mib(index_t bytes) {
  return fmt::format("{:.4g} MiB", static_cast<double>(bytes) / 1048576);
}

index_t needed_bytes(const MemoryCost& cost, const RankSpeed& rank) {
  return cost.tensors_peak + (rank.device.empty() || rank.device == "cpu" ? cost.messages : 0);
}

/// The ranks of one slab: `visit(coord, world rank)`.
template <class Visit>
void for_slab(const Plan& plan, index_t d, index_t i, std::size_t first_slot, const Visit& visit) {
  const auto& [p, q, r] = plan.replica(d).cuboid;
  auto slot = first_slot + static_cast<std::size_t>(i * q * r);
  for (index_t j = 0; j < q; ++j)
    for (index_t k = 0; k < r; ++k, ++slot)
      visit(Coord{d, i, j, k}, plan.place.empty() ? static_cast<int>(slot) : plan.place[slot]);
}

std::size_t first_slot(const Plan& plan, index_t d) {
  index_t slots = 0;
  for (index_t before = 0; before < d; ++before) {
    const auto& [p, q, r] = plan.replica(before).cuboid;
    slots += p * q * r;
  }
  return static_cast<std::size_t>(slots);
}

/// All cuts of tokens give slab i `part` of them, and the rest to others.
void set_slab_tokens(ReplicaPlan& replica, index_t i, double part) {
  for (Partition& cut : replica.tokens) {
    std::vector<index_t> sizes(static_cast<std::size_t>(cut.parts()), 0);
    const auto own = static_cast<index_t>(part * static_cast<double>(cut.size(i)));
    sizes[static_cast<std::size_t>(i)] = own;
    sizes[i == 0 ? sizes.size() - 1 : 0] += cut.length() - own;
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
    changed.replicas[static_cast<std::size_t>(d)].storage = Partition::from_sizes("storage", sizes);
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
  const SlabKeys keys(plan);
  std::map<SlabKeys::Key, std::vector<MemoryCost>> costs;  // of a slab by (j, k), where asked for
  std::vector<MemoryShortage> all;
  std::size_t slab = 0, slot = 0;
  for (index_t d = 0; d < std::ssize(plan.replicas); ++d) {
    const auto& [p, q, r] = plan.replica(d).cuboid;
    for (index_t i = 0; i < p; ++i, ++slab) {
      MemoryShortage worst;
      std::vector<MemoryCost>* known = nullptr;
      for_slab(plan, d, i, slot, [&](const Coord& coord, int rank) {
        const RankSpeed& speed = speeds.ranks[static_cast<std::size_t>(rank)];
        if (speed.free_bytes == 0) return;
        if (known == nullptr) known = &costs[keys.key(d, i)];
        if (known->empty()) known->resize(static_cast<std::size_t>(q * r));
        MemoryCost& cost = (*known)[static_cast<std::size_t>(coord.j * r + coord.k)];
        if (cost.live_peak == 0) cost = memory_cost(plan, coord);
        const index_t needed = needed_bytes(cost, speed), over = needed - speed.free_bytes;
        if (over > 0 && over > worst.needed - worst.room)
          worst = {slab, coord, rank, cost, needed, speed.free_bytes};
      });
      if (worst.needed > 0) all.push_back(worst);
    }
    slot += static_cast<std::size_t>(p * q * r);
  }
  return all;
}

index_t sequences_that_fit(const Plan& plan, const MemoryShortage& shortage, index_t now) {
  Plan without = plan;
  const Coord& at = shortage.coord;
  if (now == 0 || plan.replica(at.d).cuboid[0] == 1) return now - 1;
  set_slab_tokens(without.replicas[static_cast<std::size_t>(at.d)], at.i, 0);
  const MemoryCost fixed = memory_cost(without, at);
  const index_t least = fixed.tensors_peak + shortage.needed - shortage.cost.tensors_peak;
  if (least > shortage.room) return -1;
  const double each = static_cast<double>(shortage.needed - least) / static_cast<double>(now);
  const auto fit = static_cast<index_t>(static_cast<double>(shortage.room - least) / each);
  return std::min(fit, now - 1);
}

std::vector<index_t> storage_by_memory(const Plan& plan, const Speeds& speeds, index_t d) {
  const ReplicaPlan& replica = plan.replica(d);
  const double fibre = bytes_of_fibre(plan, d);
  const std::size_t slot = first_slot(plan, d);
  std::vector<double> limits;
  for (index_t i = 0; i < replica.cuboid[0]; ++i) {
    const double share = static_cast<double>(replica.storage.size(i)) /
                         static_cast<double>(replica.storage.length());
    double limit = 1;
    for_slab(plan, d, i, slot, [&](const Coord& coord, int rank) {
      const RankSpeed& speed = speeds.ranks[static_cast<std::size_t>(rank)];
      if (speed.free_bytes == 0) return;
      const index_t left = speed.free_bytes - needed_bytes(memory_cost(plan, coord), speed);
      limit = std::min(limit, share + static_cast<double>(left) / fibre);
    });
    limits.push_back(std::max(limit, 0.0));
  }
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
