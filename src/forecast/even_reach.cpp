#include "forecast/even_reach.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace t3d {
namespace {

/// Along which its members differ.
bool is_over(Group group, Axis axis) {
  switch (group) {
    case Group::i: return axis == Axis::i;
    case Group::j: return axis == Axis::j;
    case Group::k: return axis == Axis::k;
    case Group::ij: return axis == Axis::i || axis == Axis::j;
    case Group::ik: return axis == Axis::i || axis == Axis::k;
    case Group::jk: return axis == Axis::j || axis == Axis::k;
    case Group::cuboid: return axis != Axis::d;
    case Group::d: return axis == Axis::d;
    default: return true;
  }
}

std::size_t index_of(Axis axis) { return static_cast<std::size_t>(axis); }

}  // namespace

std::optional<EvenReach> EvenReach::of(const Plan& plan, const JobNodes& nodes) {
  if (nodes.parts().size() != 1) return std::nullopt;
  const std::optional<AxisOrder> order = order_of(plan);
  if (!order) return std::nullopt;
  return EvenReach(plan, nodes, *order);
}

EvenReach::EvenReach(const Plan& plan, const JobNodes& nodes, const AxisOrder& order)
    : plan_(&plan),
      nodes_(&nodes),
      order_(order),
      extents_(axis_extents(std::ssize(plan.replicas), plan.replicas.front().cuboid)),
      strides_(strides_of(order, extents_)) {
  const Cluster& cluster = nodes.cluster();
  const NodeClass& own = cluster.classes[nodes.parts().front().node_class];
  ranks_per_node_ = own.ranks_per_node;
  for (std::size_t group = 0; group < lines_.size(); ++group)
    for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
      if (!is_over(static_cast<Group>(group), *axis)) continue;
      const Line next{strides_[index_of(*axis)], extents_[index_of(*axis)]};
      std::vector<Line>& lines = lines_[group];
      if (!lines.empty() && lines.back().stride == next.stride * next.count)
        lines.back() = {next.stride, next.count * lines.back().count};
      else
        lines.push_back(next);
    }
  for (std::size_t level = 0; level < cluster.levels.size(); ++level)
    if (const std::string& of = cluster.levels[level].node_class; of.empty() || of == own.name)
      levels_.push_back(level);
  const auto size_of_level = [&](std::size_t level) {
    const Level& one = cluster.levels[level];
    constexpr index_t kAny = std::numeric_limits<index_t>::max();
    return std::tuple{one.nodes == 0 ? kAny : one.nodes, one.ranks == 0 ? kAny : one.ranks,
                      one.node_class.empty()};
  };
  std::stable_sort(levels_.begin(), levels_.end(), [&](std::size_t a, std::size_t b) {
    return size_of_level(a) < size_of_level(b);
  });
}

index_t EvenReach::Members::before(index_t rank) const {
  index_t after = rank - first, inside = count, found = 0;
  if (after <= 0) return 0;
  for (const Line& line : *lines) {
    inside /= line.count;
    const index_t whole = after / line.stride;
    if (whole >= line.count) return found + line.count * inside;
    found += whole * inside;
    after -= whole * line.stride;
  }
  return found + (after > 0 ? 1 : 0);
}

index_t EvenReach::rank_of(const Coord& coord) const {
  index_t rank = 0;
  for (const Axis axis : {Axis::i, Axis::j, Axis::k, Axis::d})
    rank += coord.at(axis) * strides_[index_of(axis)];
  return rank;
}

Coord EvenReach::coord_of(index_t world_rank) const {
  const auto along = [&](Axis axis) {
    return world_rank / strides_[index_of(axis)] % extents_[index_of(axis)];
  };
  return {along(Axis::d), along(Axis::i), along(Axis::j), along(Axis::k)};
}

EvenReach::Members EvenReach::members(index_t world_rank, Group group) const {
  const std::vector<Line>& lines = lines_[static_cast<std::size_t>(group)];
  Members members{world_rank, 1, &lines};
  for (const Line& line : lines) {
    members.first -= world_rank / line.stride % line.count * line.stride;
    members.count *= line.count;
  }
  return members;
}

EvenReach::Range EvenReach::range(const Level& level, index_t world_rank) const {
  if (level.nodes == 0) return {0, std::numeric_limits<index_t>::max()};
  const index_t node = world_rank / ranks_per_node_, first = node / level.nodes * level.nodes;
  Range range{first * ranks_per_node_, (first + level.nodes) * ranks_per_node_};
  if (level.ranks == 0) return range;
  const index_t part = world_rank % ranks_per_node_ / level.ranks;
  range.from = node * ranks_per_node_ + part * level.ranks;
  range.end = std::min(range.from + level.ranks, (node + 1) * ranks_per_node_);
  return range;
}

// All ranges have the rank itself, so what the levels up to one have together is a range, too.
Reach EvenReach::reach(index_t world_rank, Group group) const {
  const Members all = members(world_rank, group);
  Reach reach;
  reach.peers = all.count - 1;
  const index_t node = world_rank / ranks_per_node_;
  const index_t here = all.in({node * ranks_per_node_, (node + 1) * ranks_per_node_});
  Range known{world_rank, world_rank + 1};
  index_t counted = 1;
  for (const std::size_t at : levels_) {
    const Level& level = nodes_->cluster().levels[at];
    const Range next = range(level, world_rank);
    known = {std::min(known.from, next.from), std::max(known.end, next.end)};
    const index_t together = all.in(known);
    if (together > counted) reach.levels.push_back({at, together - counted, together > here});
    counted = together;
    if (counted == reach.peers + 1) break;
  }
  if (counted <= reach.peers)  // says what lacks
    return nodes_->reach(*plan_, coord_of(world_rank), group);
  reach.senders = std::min(ranks_per_node_, nodes_->ranks());
  reach.groups = std::max<index_t>(1, reach.senders / here);
  return reach;
}

}  // namespace t3d
