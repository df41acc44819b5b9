#include "tools/plan/node_memory.hpp"

#include <algorithm>

#include "forecast/class_memory.hpp"
#include "run/resident.hpp"

namespace t3d {
namespace {

constexpr index_t kMiB = index_t{1} << 20;

}  // namespace

index_t node_memory_bytes(const FoundPlan& found, std::size_t node_class, const Cluster& cluster,
                          AsyncRule rule) {
  const NodeClass& own = cluster.classes[node_class];
  if (own.device != "cpu") return 0;
  const Plan& plan = found.plan;
  const ClassMemory most = class_memory(plan, JobNodes(cluster, found.parts))[node_class];
  const index_t others = checkpoint_bound(plan, false, own.ranks_per_node),
                writer = checkpoint_bound(plan, true, own.ranks_per_node);
  const index_t rank = most.needed_bytes + program_bytes(plan.ranks).all() + others +
                       snapshot_bytes(plan, rule, most.parameters);
  return own.ranks_per_node * rank + std::max<index_t>(0, writer - others);
}

void ask_memory(const FoundPlan& found, const Cluster& cluster, AsyncRule rule,
                std::vector<SbatchPart>& parts) {
  for (std::size_t at = 0; at < parts.size(); ++at) {
    const std::size_t node_class = found.parts[at].node_class;
    const NodeClass& own = cluster.classes[node_class];
    if (own.asks_memory == AsksMemory::no) continue;
    const index_t needed = node_memory_bytes(found, node_class, cluster, rule);
    if (needed == 0) continue;
    index_t asked = needed + std::max(needed / 10, 256 * kMiB);
    if (own.memory_bytes > 0)
      asked = std::max(needed, std::min(asked, own.memory_bytes * own.ranks_per_node));
    parts[at].memory_bytes = asked;
  }
}

}  // namespace t3d
