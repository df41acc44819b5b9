#include "tools/plan/job_parts.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace t3d {
namespace {

template <class List>
bool contains(const List& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

/// A job in `partition` may get its nodes; empty = the site's, which is not known here.
bool serves(const std::string& partition, const NodeClass& one, const Cluster& cluster) {
  if (partition.empty() || one.partition.empty() || one.partition == partition) return true;
  return std::any_of(cluster.scheduler.partitions.begin(), cluster.scheduler.partitions.end(),
                     [&](const SchedulerPartition& own) {
                       return own.name == partition && contains(own.classes, one.name);
                     });
}

/// Nodes that the constraint of `own` does not keep away.
std::vector<std::string> others_with_its_features(const NodeClass& own, const Cluster& cluster) {
  std::vector<std::string> lists;
  for (const NodeClass& one : cluster.classes) {
    const bool has_all =
        std::all_of(own.features.begin(), own.features.end(),
                    [&](const std::string& feature) { return contains(one.features, feature); });
    if (one.name != own.name && has_all && !one.node_list.empty() &&
        one.node_list != own.node_list && serves(own.partition, one, cluster))
      lists.push_back(one.node_list);
  }
  return lists;
}

}  // namespace

std::vector<SbatchPart> sbatch_parts(const std::vector<JobPart>& parts, const Cluster& cluster) {
  std::vector<SbatchPart> all;
  for (const JobPart& part : parts) {
    const NodeClass& own = cluster.classes[part.node_class];
    all.push_back(
        {.nodes = part.nodes,
         .ranks_per_node = own.ranks_per_node,
         .cores_per_rank = own.cores_per_rank,
         .gpus_per_rank = own.gpus_per_rank,
         .partition = own.partition,
         .constraint = fmt::format("{}", fmt::join(own.features, "&")),
         .exclude = fmt::format("{}", fmt::join(others_with_its_features(own, cluster), ","))});
  }
  return all;
}

}  // namespace t3d
