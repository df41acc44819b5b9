#include "forecast/job_nodes.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "core/error.hpp"

namespace t3d {
namespace {

/// Slots of the members of a group beside the rank itself: those that differ from it along the
/// group's axes alone.
template <class Visit>
void for_each_peer(const Plan& plan, const Coord& at, Group group, Visit&& visit) {
  const auto whole = [&](index_t d, bool over_i, bool over_j, bool over_k) {
    const auto& [p, q, r] = plan.replica(d).cuboid;
    for (index_t i = over_i ? 0 : at.i; i < (over_i ? p : at.i + 1); ++i)
      for (index_t j = over_j ? 0 : at.j; j < (over_j ? q : at.j + 1); ++j)
        for (index_t k = over_k ? 0 : at.k; k < (over_k ? r : at.k + 1); ++k)
          if (d != at.d || i != at.i || j != at.j || k != at.k) visit(Coord{d, i, j, k});
  };
  const bool world = group == Group::world;
  if (group == Group::d || world) {
    for (index_t d = 0; d < std::ssize(plan.replicas); ++d) whole(d, world, world, world);
    return;
  }
  const bool all = group == Group::cuboid;
  whole(at.d, all || group == Group::i || group == Group::ij || group == Group::ik,
        all || group == Group::j || group == Group::ij || group == Group::jk,
        all || group == Group::k || group == Group::ik || group == Group::jk);
}

}  // namespace

JobNodes::JobNodes(const Cluster& cluster, std::vector<JobPart> parts)
    : cluster_(cluster), parts_(std::move(parts)) {
  for (const JobPart& part : parts_) {
    const NodeClass& own = cluster_.classes[part.node_class];
    if (part.nodes > own.nodes)
      throw_error(ExitCode::config, "{} nodes of class {}, which has {}", part.nodes, own.name,
                  own.nodes);
    nodes_ += part.nodes;
    ranks_ += part.nodes * own.ranks_per_node;
    if (ranks_ > std::numeric_limits<int>::max())
      throw_error(ExitCode::config, "{} nodes of class {} have {} ranks, more than a job may have",
                  part.nodes, own.name, ranks_);
  }
}

JobNodes::Seat JobNodes::seat(index_t world_rank) const {
  index_t first_node = 0;
  for (const JobPart& part : parts_) {
    const index_t each = cluster_.classes[part.node_class].ranks_per_node;
    if (world_rank < part.nodes * each)
      return {part.node_class, first_node + world_rank / each, each, world_rank % each};
    world_rank -= part.nodes * each;
    first_node += part.nodes;
  }
  T3D_CHECK(false, "no node for rank {}", world_rank);
}

// The innermost level that has both ranks; of two alike the one of the class alone, which was
// measured there.
std::size_t JobNodes::level_between(const Seat& a, const Seat& b) const {
  constexpr index_t kAny = std::numeric_limits<index_t>::max();
  const auto count = [](index_t number) { return number == 0 ? kAny : number; };
  std::size_t best = cluster_.levels.size();
  std::tuple<index_t, index_t, bool> smallest{};
  for (std::size_t at = 0; at < cluster_.levels.size(); ++at) {
    const Level& level = cluster_.levels[at];
    const bool of_class =
        level.node_class.empty() || level.node_class == cluster_.classes[a.node_class].name;
    const index_t nodes = count(level.nodes), ranks = count(level.ranks);
    const bool both = a.node / nodes == b.node / nodes &&
                      (ranks == kAny || (a.node == b.node && a.place / ranks == b.place / ranks));
    const std::tuple size{nodes, ranks, level.node_class.empty()};
    if (of_class && both && (best == cluster_.levels.size() || size < smallest)) {
      smallest = size;
      best = at;
    }
  }
  if (best == cluster_.levels.size())
    throw_error(
        ExitCode::config, "the cluster has no [[level]] by which {} of class {} reach each other",
        a.node == b.node ? "ranks of a node" : "nodes", cluster_.classes[a.node_class].name);
  return best;
}

Reach JobNodes::reach(const Plan& plan, const Coord& coord, Group group) const {
  std::vector<index_t> first_slot;  // by replica
  index_t slots = 0;
  for (const ReplicaPlan& replica : plan.replicas) {
    first_slot.push_back(slots);
    slots += replica.cuboid[0] * replica.cuboid[1] * replica.cuboid[2];
  }
  const auto seat_of = [&](const Coord& at) {
    const auto& [p, q, r] = plan.replica(at.d).cuboid;
    const index_t slot = first_slot[static_cast<std::size_t>(at.d)] + (at.i * q + at.j) * r + at.k;
    return seat(plan.place.empty() ? slot : plan.place[static_cast<std::size_t>(slot)]);
  };
  const Seat own = seat_of(coord);
  Reach reach;
  index_t here = 1;  // members on the rank's node
  for_each_peer(plan, coord, group, [&](const Coord& at) {
    const Seat other = seat_of(at);
    const std::size_t level = level_between(own, other);
    const bool between = other.node != own.node;
    if (!between) ++here;
    ++reach.peers;
    const auto known = std::find_if(reach.levels.begin(), reach.levels.end(),
                                    [&](const Reach::At& one) { return one.level == level; });
    if (known == reach.levels.end())
      reach.levels.push_back({level, 1, between});
    else
      ++known->peers;
  });
  reach.senders = std::min(own.ranks_per_node, ranks_);
  reach.groups = std::max<index_t>(1, reach.senders / here);
  return reach;
}

// Links upward carry nodes / oversubscription times what one node sends, and at least that of one.
double JobNodes::oversubscribed(std::size_t level) const {
  const Level& own = cluster_.levels[level];
  if (own.nodes == 1) return 1;
  index_t below = 0;  // nodes under one switch of the level inside; 0 = not known
  for (const Level& other : cluster_.levels) {
    const bool same =
        other.node_class.empty() || own.node_class.empty() || other.node_class == own.node_class;
    if (same && other.nodes > 1 && (own.nodes == 0 || other.nodes < own.nodes))
      below = std::max(below, other.nodes);
  }
  if (below == 0) return std::min(own.oversubscription, static_cast<double>(nodes_));
  const double part = static_cast<double>(std::min(nodes_, below)) / static_cast<double>(below);
  return std::max(1.0, own.oversubscription * part);
}

}  // namespace t3d
