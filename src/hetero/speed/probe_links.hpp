// What messages cost: alpha + beta bytes, measured in the groups that the plan's matmuls and
// aggregation use, with the collective they use most. n ranks that gather pieces of b bytes send
// n - 1 messages each, one after another: (n - 1) (alpha + beta b) seconds.
#pragma once
#include <array>
#include <functional>
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

/// Collective over `mesh`. `nodes`: node of each of its ranks. `together` is called before each
/// group. About `seconds` at most: where they are short, large messages are left out.
[[nodiscard]] GroupLinks probe_links(const ProbeMachine& machine, const Mesh& mesh,
                                     std::span<const int> nodes, double seconds,
                                     const std::function<void()>& together);

/// Medians over all groups of all ranks. A kind that no group has takes the other's numbers, 0
/// where nothing was measured.
void summarise_links(std::span<const GroupLinks> ranks, Speeds& speeds);

}  // namespace t3d
