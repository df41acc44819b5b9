// Which groups measure their collectives, one phase after another: of each level, of several sizes,
// one alone and then all at once. Pure arithmetic, the same on all ranks.
#pragma once
#include <string>
#include <vector>

#include "tools/calibrate/class_facts.hpp"

namespace t3d {

struct GroupPhase {
  std::string level, node_class;         // where its samples belong
  index_t nodes = 0;                     // Level::nodes
  std::vector<std::vector<int>> groups;  // world ranks; disjoint
  index_t together = 1;                  // groups that share a node's memory or NICs
};

[[nodiscard]] std::vector<GroupPhase> group_phases(const JobClasses& job);

}  // namespace t3d
