// What messages cost: alpha + beta bytes, measured in the groups that the plan's matmuls and
// aggregation use, with the collective they use most. n ranks that gather pieces of b bytes send
// n - 1 messages each, one after another: (n - 1) (alpha + beta b) seconds.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "comm/mesh.hpp"
#include "hetero/speed/probe.hpp"

namespace t3d {

struct GroupLink {
  LinkSpeed link;
  bool measured = false;  // the group has several members
  bool between = false;   // not all of them on one node
};

/// i, j, k and d; the whole mesh where replicas differ, as they have no axis d.
inline constexpr std::size_t kProbedGroups = 5;
using GroupLinks = std::array<GroupLink, kProbedGroups>;

struct LinkBudget {
  /// About so long at most: where it is short, large messages are left out.
  double seconds = 1;
  /// Largest buffer, the same on all ranks: where it is small, large messages are left out.
  index_t bytes = index_t{64} << 20;
};

/// Collective over `mesh`, which is all of `control`. `nodes`: node of each of its ranks. Memory is
/// asked for before the first message: a rank that gets none ends all of them with its error.
[[nodiscard]] GroupLinks probe_links(const ProbeMachine& machine, const Mesh& mesh,
                                     std::span<const int> nodes, const LinkBudget& budget,
                                     Communicator& control);

/// Medians over all groups of all ranks. A kind that no group has takes the other's numbers, 0
/// where nothing was measured.
void summarise_links(std::span<const GroupLinks> ranks, Speeds& speeds);

}  // namespace t3d
