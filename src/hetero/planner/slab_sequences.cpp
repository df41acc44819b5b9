#include "hetero/planner/slab_sequences.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "core/error.hpp"
#include "hetero/solve/apportion.hpp"

namespace t3d {
namespace {

/// Every leaf as it was, in its order; empty ones at the end of each replica.
std::vector<std::vector<index_t>> whole_leaves(index_t sequences, index_t unit, index_t most,
                                               index_t micro) {
  T3D_CHECK(unit > 0 && sequences % unit == 0, "{} sequences in leaves of {}", sequences, unit);
  const index_t count = sequences / unit;
  std::vector<std::vector<index_t>> leaves =
      even_leaves(sequences, std::max(count, index_t{1}), micro);
  leaves.resize(static_cast<std::size_t>(most));
  return leaves;
}

/// Cuts of all sizes of micro-batch, in proportion to the slabs' sequences.
std::vector<Partition> token_cuts(const ReplicaPlan& replica, std::span<const index_t> slabs) {
  std::set<index_t> sizes;
  for (const auto& leaf : replica.leaves) sizes.insert(leaf.begin(), leaf.end());
  if (sizes.empty()) return replica.tokens;  // a replica without samples still evaluates
  const std::vector<double> speeds(slabs.begin(), slabs.end());
  std::vector<Partition> cuts;
  for (const index_t size : sizes)
    cuts.push_back(Partition::from_sizes("tokens", min_max_apportion(size, speeds)));
  return cuts;
}

}  // namespace

std::vector<std::vector<index_t>> even_leaves(index_t sequences, index_t leaves, index_t micro) {
  std::vector<std::vector<index_t>> result;
  for (const index_t n : Partition::even("leaves", sequences, leaves).sizes()) {
    const index_t pass = micro > 0 ? micro : n;
    result.emplace_back();
    if (n > 0) result.back() = Partition::even("micro", n, (n + pass - 1) / pass).sizes();
  }
  return result;
}

bool moves_whole_leaves(const Plan& plan) {
  return plan.aggregate.method == AggregateMethod::adasum && plan.aggregate.leaves > 1;
}

index_t leaf_unit(const Plan& plan) {
  if (!moves_whole_leaves(plan)) return 1;
  if (plan.updates_locally()) return 0;
  index_t unit = 0;
  for (const ReplicaPlan& replica : plan.replicas)
    for (std::size_t leaf = 0; leaf < replica.leaves.size(); ++leaf) {
      const index_t size = replica.sequences_of(leaf);
      if (size == 0) continue;
      if (unit != 0 && size != unit) return 0;
      unit = size;
    }
  return unit;
}

Plan with_slab_sequences(const Plan& plan, std::span<const index_t> sequences, index_t micro) {
  Plan result = plan;
  const bool whole = moves_whole_leaves(plan);
  const index_t unit = leaf_unit(plan);
  std::vector<std::span<const index_t>> slabs;
  index_t most = plan.aggregate.leaves, total = 0;
  for (std::size_t d = 0, first = 0; d < plan.replicas.size(); ++d) {
    const auto p = static_cast<std::size_t>(plan.replicas[d].cuboid[0]);
    T3D_CHECK(first + p <= sequences.size(), "sequences of {} slabs", sequences.size());
    slabs.push_back(sequences.subspan(first, p));
    const index_t own = std::accumulate(slabs[d].begin(), slabs[d].end(), index_t{0});
    if (whole && unit > 0) most = std::max(most, own / unit);
    total += own;
    first += p;
  }
  T3D_CHECK(total == plan.sequences(), "{} sequences instead of {}", total, plan.sequences());
  for (std::size_t d = 0; d < plan.replicas.size(); ++d) {
    ReplicaPlan& replica = result.replicas[d];
    const index_t own = std::accumulate(slabs[d].begin(), slabs[d].end(), index_t{0});
    if (own != replica.sequences() || !whole)
      replica.leaves = whole ? whole_leaves(own, unit, most, micro)
                             : even_leaves(own, plan.leaves_per_replica(), micro);
    replica.leaves.resize(static_cast<std::size_t>(whole ? most : plan.leaves_per_replica()));
    replica.tokens = token_cuts(replica, slabs[d]);
  }
  result.check();
  return result;
}

}  // namespace t3d
