#include "tools/calibrate/group_phases.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace t3d {
namespace {

/// The smallest group, the largest, and one between them.
std::vector<std::size_t> sizes_up_to(std::size_t most) {
  std::set<std::size_t> sizes;
  if (most >= 2) sizes = {2, most};
  for (std::size_t size = 2; size < most; size *= 2)
    if (size * size >= most) {
      sizes.insert(size);
      break;
    }
  return {sizes.begin(), sizes.end()};
}

class Phases {
 public:
  /// `lines`: ranks that reach each other at this level, by node where that matters.
  void add(const std::string& level, const std::string& node_class, index_t nodes,
           const std::vector<std::vector<int>>& lines, index_t lines_per_node) {
    std::size_t most = 0;
    for (const auto& line : lines) most = std::max(most, line.size());
    for (const std::size_t size : sizes_up_to(most)) {
      GroupPhase all{level, node_class, nodes, {}, 1};
      index_t per_line = 0;
      for (const auto& line : lines) {
        const std::size_t parts = line.size() / size;
        per_line = std::max(per_line, static_cast<index_t>(parts));
        for (std::size_t part = 0; part < parts; ++part)
          all.groups.emplace_back(line.begin() + static_cast<std::ptrdiff_t>(part * size),
                                  line.begin() + static_cast<std::ptrdiff_t>((part + 1) * size));
      }
      // Inside a node its groups share the memory; between nodes those that begin on one node.
      all.together = nodes == 1 ? per_line : lines_per_node;
      GroupPhase alone = all;
      alone.groups.resize(1);
      alone.together = 1;
      phases.push_back(std::move(alone));
      if (all.together > 1) phases.push_back(std::move(all));
    }
  }
  std::vector<GroupPhase> phases;
};

}  // namespace

std::vector<GroupPhase> group_phases(const JobClasses& job) {
  const std::size_t ranks = job.node_of_ranks.size();
  Phases made;
  for (std::size_t at = 0; at < job.classes.size(); ++at) {
    std::map<int, std::vector<int>> by_node;
    for (std::size_t rank = 0; rank < ranks; ++rank)
      if (job.class_of_ranks[rank] == static_cast<int>(at))
        by_node[job.node_of_ranks[rank]].push_back(static_cast<int>(rank));
    std::vector<std::vector<int>> lines;
    for (auto& [node, line] : by_node) lines.push_back(std::move(line));
    made.add("node", job.classes[at].name, 1, lines, 1);
  }
  // Between nodes: lines of ranks with the same place on their nodes.
  const bool leaves = std::none_of(job.leaves.begin(), job.leaves.end(),
                                   [](const std::string& leaf) { return leaf.empty(); }) &&
                      std::set(job.leaves.begin(), job.leaves.end()).size() > 1;
  const std::string node_class = job.classes.size() == 1 ? job.classes.front().name : "";
  std::map<std::pair<std::string, int>, std::vector<int>> inside, across;
  std::set<std::pair<std::string, int>> first;  // of each leaf and place
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::string leaf = leaves ? job.leaves[rank] : "";
    inside[{leaf, job.place_on_node[rank]}].push_back(static_cast<int>(rank));
    if (first.insert({leaf, job.place_on_node[rank]}).second)
      across[{"", job.place_on_node[rank]}].push_back(static_cast<int>(rank));
  }
  const auto add_lines = [&](const std::string& level, index_t nodes, const auto& by_key) {
    std::vector<std::vector<int>> lines;
    std::set<int> places;
    for (const auto& [key, line] : by_key) {
      lines.push_back(line);
      places.insert(key.second);
    }
    made.add(level, node_class, nodes, lines, std::ssize(places));
  };
  if (leaves) {
    std::map<std::string, std::set<int>> nodes;
    for (std::size_t rank = 0; rank < ranks; ++rank)
      nodes[job.leaves[rank]].insert(job.node_of_ranks[rank]);
    index_t most = 0;
    for (const auto& [leaf, own] : nodes) most = std::max<index_t>(most, std::ssize(own));
    add_lines("leaf", most, inside);
    add_lines("core", 0, across);
  } else {
    add_lines("network", 0, inside);
  }
  return made.phases;
}

}  // namespace t3d
