// Which groups measure their collectives, for jobs of several nodes, classes and switches.
#include "tools/calibrate/group_phases.hpp"

#include <algorithm>

#include "support/catch.hpp"

using namespace t3d;

namespace {

/// So many nodes with so many ranks each; class and switch by node.
JobClasses job_of(int nodes, int ranks, const std::vector<int>& classes,
                  const std::vector<std::string>& leaves) {
  JobClasses job;
  for (int node = 0; node < nodes; ++node)
    for (int rank = 0; rank < ranks; ++rank) {
      const auto at = static_cast<std::size_t>(node);
      job.node_of_ranks.push_back(node);
      job.place_on_node.push_back(rank);
      job.class_of_ranks.push_back(classes.empty() ? 0 : classes[at]);
      job.leaves.push_back(leaves.empty() ? "" : leaves[at]);
    }
  const int most = classes.empty() ? 0 : *std::max_element(classes.begin(), classes.end());
  for (int at = 0; at <= most; ++at) {
    NodeClass one;
    one.name = std::string(1, static_cast<char>('a' + at));
    job.classes.push_back(one);
  }
  return job;
}

const GroupPhase* find(const std::vector<GroupPhase>& phases, const std::string& level,
                       std::size_t size, bool alone) {
  const auto found = std::find_if(phases.begin(), phases.end(), [&](const GroupPhase& phase) {
    return phase.level == level && phase.groups.front().size() == size &&
           (phase.together == 1) == alone;
  });
  return found == phases.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("one node: pairs and all of it, one alone and then together") {
  const auto phases = group_phases(job_of(1, 4, {}, {}));
  REQUIRE(phases.size() == 3);
  CHECK(find(phases, "node", 2, true)->groups == std::vector<std::vector<int>>{{0, 1}});
  CHECK(find(phases, "node", 2, false)->groups == std::vector<std::vector<int>>{{0, 1}, {2, 3}});
  CHECK(find(phases, "node", 2, false)->together == 2);
  CHECK(find(phases, "node", 4, true)->groups.size() == 1);
  CHECK(phases.front().node_class == "a");
  CHECK(group_phases(job_of(1, 1, {}, {})).empty());
}

TEST_CASE("two classes: inside nodes by class, between nodes for all") {
  const auto phases = group_phases(job_of(4, 2, {0, 0, 1, 1}, {}));
  const GroupPhase* const pair = find(phases, "network", 2, false);
  REQUIRE(pair != nullptr);
  CHECK(pair->node_class.empty());
  CHECK(pair->nodes == 0);
  CHECK(pair->together == 2);  // both ranks of a node use its NICs
  CHECK(pair->groups == std::vector<std::vector<int>>{{0, 2}, {4, 6}, {1, 3}, {5, 7}});
  REQUIRE(find(phases, "network", 4, false) != nullptr);
  CHECK(find(phases, "network", 4, false)->together == 2);
  CHECK(find(phases, "network", 4, true)->groups == std::vector<std::vector<int>>{{0, 2, 4, 6}});
  std::vector<std::string> inside;
  for (const GroupPhase& phase : phases)
    if (phase.level == "node") inside.push_back(phase.node_class);
  CHECK(inside == std::vector<std::string>{"a", "b"});
}

TEST_CASE("switches: inside a leaf, and one node of each across") {
  const auto phases = group_phases(job_of(5, 1, {}, {"x", "x", "x", "y", "y"}));
  const GroupPhase* const leaf = find(phases, "leaf", 2, true);
  REQUIRE(leaf != nullptr);
  CHECK(leaf->nodes == 3);
  CHECK(leaf->groups == std::vector<std::vector<int>>{{0, 1}});
  const GroupPhase* const core = find(phases, "core", 2, true);
  REQUIRE(core != nullptr);
  CHECK(core->groups == std::vector<std::vector<int>>{{0, 3}});
}

TEST_CASE("names of classes") {
  CHECK(class_name_of("AMD EPYC 7763 64-Core") == "amd-epyc-7763-64-core");
  CHECK(class_name_of("--") == "nodes");
}
