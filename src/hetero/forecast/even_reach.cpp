#include "hetero/forecast/even_reach.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace t3d {

bool EvenReach::fits(const Plan& plan, const JobNodes& nodes) {
  return nodes.parts().size() == 1 && plan.place.empty() &&
         std::all_of(plan.replicas.begin(), plan.replicas.end(), [&](const ReplicaPlan& replica) {
           return replica.cuboid == plan.replicas.front().cuboid;
         });
}

EvenReach::EvenReach(const Plan& plan, const JobNodes& nodes)
    : plan_(plan),
      nodes_(nodes),
      p_(plan.replicas.front().cuboid[0]),
      q_(plan.replicas.front().cuboid[1]),
      r_(plan.replicas.front().cuboid[2]),
      replicas_(std::ssize(plan.replicas)) {
  const Cluster& cluster = nodes.cluster();
  const NodeClass& own = cluster.classes[nodes.parts().front().node_class];
  ranks_per_node_ = own.ranks_per_node;
  for (std::size_t at = 0; at < cluster.levels.size(); ++at)
    if (const std::string& of = cluster.levels[at].node_class; of.empty() || of == own.name)
      levels_.push_back(at);
  const auto size_of_level = [&](std::size_t at) {
    const Level& level = cluster.levels[at];
    constexpr index_t kAny = std::numeric_limits<index_t>::max();
    return std::tuple{level.nodes == 0 ? kAny : level.nodes, level.ranks == 0 ? kAny : level.ranks,
                      level.node_class.empty()};
  };
  std::stable_sort(levels_.begin(), levels_.end(), [&](std::size_t a, std::size_t b) {
    return size_of_level(a) < size_of_level(b);
  });
}

index_t EvenReach::Members::before(index_t rank) const {
  const index_t after = rank - first;
  if (after <= 0) return 0;
  const index_t whole = after / distance;
  return whole >= runs ? runs * length
                       : whole * length + std::min(length, after - whole * distance);
}

Coord EvenReach::coord_of(index_t slot) const {
  return {slot / (p_ * q_ * r_), slot / (q_ * r_) % p_, slot / r_ % q_, slot % r_};
}

EvenReach::Members EvenReach::members(index_t slot, Group group) const {
  const Coord at = coord_of(slot);
  const index_t slab = q_ * r_, cuboid = p_ * slab, first = at.d * cuboid;
  switch (group) {
    case Group::i: return {slot - at.i * slab, p_, slab, 1};
    case Group::j: return {slot - at.j * r_, q_, r_, 1};
    case Group::k: return {slot - at.k, 1, r_, r_};
    case Group::ij: return {first + at.k, p_ * q_, r_, 1};
    case Group::ik: return {first + at.j * r_, p_, slab, r_};
    case Group::jk: return {first + at.i * slab, 1, slab, slab};
    case Group::cuboid: return {first, 1, cuboid, cuboid};
    case Group::d: return {slot - first, replicas_, cuboid, 1};
    default: return {0, 1, replicas_ * cuboid, replicas_ * cuboid};
  }
}

EvenReach::Range EvenReach::range(const Level& level, index_t slot) const {
  if (level.nodes == 0) return {0, std::numeric_limits<index_t>::max()};
  const index_t node = slot / ranks_per_node_, first = node / level.nodes * level.nodes;
  Range range{first * ranks_per_node_, (first + level.nodes) * ranks_per_node_};
  if (level.ranks == 0) return range;
  const index_t part = slot % ranks_per_node_ / level.ranks;
  range.from = node * ranks_per_node_ + part * level.ranks;
  range.end = std::min(range.from + level.ranks, (node + 1) * ranks_per_node_);
  return range;
}

// All ranges have the rank itself, so what the levels up to one have together is a range, too.
Reach EvenReach::reach(index_t slot, Group group) const {
  const Members all = members(slot, group);
  Reach reach;
  reach.peers = all.runs * all.length - 1;
  const index_t node = slot / ranks_per_node_;
  const index_t here = all.in(node * ranks_per_node_, (node + 1) * ranks_per_node_);
  Range known{slot, slot + 1};
  index_t counted = 1;
  for (const std::size_t at : levels_) {
    const Level& level = nodes_.cluster().levels[at];
    const Range next = range(level, slot);
    known = {std::min(known.from, next.from), std::max(known.end, next.end)};
    const index_t together = all.in(known.from, known.end);
    if (together > counted) reach.levels.push_back({at, together - counted, together > here});
    counted = together;
    if (counted == reach.peers + 1) break;
  }
  if (counted <= reach.peers) return nodes_.reach(plan_, coord_of(slot), group);  // says what lacks
  reach.groups = std::max<index_t>(1, std::min(ranks_per_node_, nodes_.ranks()) / here);
  return reach;
}

}  // namespace t3d
