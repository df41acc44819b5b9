#include "hetero/planner/memory_estimate.hpp"

#include <algorithm>
#include <cmath>

#include "hetero/planner/slab_memory.hpp"

namespace t3d {

MemoryEstimate::MemoryEstimate(const PlanRecipe& recipe, const Speeds& speeds,
                               const RankOrder& order)
    : recipe_(recipe) {
  for (const int rank : order.ranks) {
    const index_t bytes = speeds.ranks[static_cast<std::size_t>(rank)].free_bytes;
    known_ |= bytes > 0;
    room_.push_back(bytes > 0 ? static_cast<double>(bytes) : HUGE_VAL);
  }
}

const std::vector<double>& MemoryEstimate::rooms(index_t size) {
  const auto [entry, is_new] = rooms_.try_emplace(size);
  if (!is_new) return entry->second;
  for (auto first = room_.begin(); room_.end() - first >= size; first += size)
    entry->second.push_back(*std::min_element(first, first + size));
  return entry->second;
}

// Slabs of one size need the same for the same sequences and part of the shards, however many there
// are: asked for with a few slabs of the usual number of sequences.
const MemoryEstimate::Needs& MemoryEstimate::needs(const Cuboid& cuboid) {
  constexpr index_t kFewSlabs = 8;
  const auto& [p, q, r] = cuboid;
  const index_t parts = std::min(p, kFewSlabs);
  const auto [entry, is_new] = needs_.try_emplace({parts, q, r});
  Needs& needs = entry->second;
  if (!is_new) return needs;
  const index_t slabs = std::max<index_t>(std::ssize(room_) / (q * r), 1);
  const index_t sequences = std::max<index_t>(recipe_.sequences / slabs, 2);
  PlanShape shape;
  shape.replicas.emplace_back();
  shape.replicas[0].cuboid = {parts, q, r};
  shape.replicas[0].sequences = parts * sequences;
  const Plan plan = build_plan(recipe_, shape);
  SlabMemory memory(plan);
  const index_t usual = std::max<index_t>(plan.replica(0).largest_micro() / parts, 2);
  const index_t half = usual / 2;
  // On the last slab: the first ranks may compute whole matrices beside.
  const Coord at{0, parts - 1, 0, 0};
  const auto needed = [&](index_t units) {
    return static_cast<double>(memory.needed(at, units, true));
  };
  const double each = (needed(usual) - needed(half)) / static_cast<double>(usual - half);
  needs.fixed = needed(half) - each * static_cast<double>(half);
  needs.each = std::max(1.0, each * static_cast<double>(usual) / static_cast<double>(sequences));
  if (parts == 1) return needs;
  const StorageCurve storage = memory.storage(at, half, true);
  needs.fibre = storage.fibre();
  needs.fixed += storage.without();
  return needs;
}

MemoryEstimate::Limits MemoryEstimate::limits(index_t replicas, const Cuboid& cuboid) {
  const auto& [p, q, r] = cuboid;
  const Needs& own = needs(cuboid);
  const std::vector<double>& rooms = this->rooms(q * r);
  Limits limits;
  double room = 0, most_units = 0;
  const auto total = static_cast<double>(recipe_.sequences);
  for (index_t slab = 0; slab < replicas * p; ++slab) {
    const double left = rooms[static_cast<std::size_t>(slab)] - own.fixed;
    const double units = std::clamp(std::floor(left / own.each), 0.0, total);
    limits.missing_bytes = std::max(limits.missing_bytes, -left);
    limits.most.push_back(static_cast<index_t>(units));
    most_units += units;
    room += left;
  }
  const double all = own.each * total + own.fibre * static_cast<double>(replicas);
  limits.missing_bytes =
      std::max({limits.missing_bytes, all - room, (total - most_units) * own.each});
  return limits;
}

}  // namespace t3d
