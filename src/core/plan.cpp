#include "core/plan.hpp"

#include <algorithm>
#include <numeric>

namespace t3d {
namespace {

index_t sum_of(const std::vector<index_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), index_t{0});
}

bool is_even(const Partition& cut) {
  return cut == Partition::even(cut.name(), cut.length(), cut.parts(), cut.unit());
}

}  // namespace

index_t ReplicaPlan::sequences_of(std::size_t leaf) const { return sum_of(leaves[leaf]); }

index_t ReplicaPlan::sequences() const {
  index_t sum = 0;
  for (const auto& leaf : leaves) sum += sum_of(leaf);
  return sum;
}

index_t ReplicaPlan::largest_micro() const {
  index_t most = 0;
  for (const auto& leaf : leaves)
    for (const index_t micro : leaf) most = std::max(most, micro);
  return most;
}

bool ReplicaPlan::cut_like(const ReplicaPlan& other) const {
  return cuboid == other.cuboid && hidden == other.hidden && groups == other.groups &&
         ffn == other.ffn && vocab == other.vocab && storage == other.storage &&
         attention == other.attention;
}

Partition ReplicaPlan::tokens_of(index_t sequences) const {
  for (const Partition& cut : tokens)
    if (cut.length() == sequences) return cut;
  const index_t parts = cuboid[0];
  if (tokens.empty() || is_even(tokens.back())) return Partition::even("tokens", sequences, parts);
  const std::vector<index_t> sizes = tokens.back().sizes();
  const std::vector<double> weights(sizes.begin(), sizes.end());
  return Partition::weighted("tokens", sequences, weights);
}

index_t Plan::sequences() const { return first_sequence(std::ssize(replicas)); }

index_t Plan::first_sequence(index_t d) const {
  index_t sum = 0;
  for (index_t before = 0; before < d; ++before) sum += replica(before).sequences();
  return sum;
}

index_t Plan::largest_micro() const {
  index_t most = 1;
  for (const ReplicaPlan& replica : replicas) most = std::max(most, replica.largest_micro());
  return most;
}

bool Plan::alike() const {
  return std::all_of(replicas.begin(), replicas.end(), [&](const ReplicaPlan& replica) {
    return replica.cut_like(replicas.front());
  });
}

bool Plan::same_parameters(const Plan& other) const {
  if (replicas.size() != other.replicas.size()) return false;
  Plan moved = other;
  for (std::size_t d = 0; d < replicas.size(); ++d) {
    if (replicas[d].leaves.size() != other.replicas[d].leaves.size()) return false;
    moved.replicas[d].leaves = replicas[d].leaves;
    moved.replicas[d].tokens = replicas[d].tokens;
  }
  return moved == *this;
}

std::vector<double> Plan::leaf_weights() const {
  std::vector<double> weights;
  for (const ReplicaPlan& replica : replicas)
    for (std::size_t leaf = 0; leaf < replica.leaves.size(); ++leaf)
      weights.push_back(static_cast<double>(replica.sequences_of(leaf)) /
                        aggregate.reference_batch);
  return weights;
}

DType activation_of(ComputeType compute) {
  switch (compute) {
    case ComputeType::bf16: return DType::bf16;
    case ComputeType::fp16: return DType::f16;
    case ComputeType::fp64: return DType::f64;
    case ComputeType::fp32:
    case ComputeType::tf32: break;
  }
  return DType::f32;
}

std::vector<int> Plan::active() const {
  std::vector<int> ranks_with_place = place;
  if (place.empty()) {  // in order already
    index_t n = 0;
    for (const ReplicaPlan& replica : replicas)
      n += replica.cuboid[0] * replica.cuboid[1] * replica.cuboid[2];
    ranks_with_place.resize(static_cast<std::size_t>(n));
    std::iota(ranks_with_place.begin(), ranks_with_place.end(), 0);
    return ranks_with_place;
  }
  std::sort(ranks_with_place.begin(), ranks_with_place.end());
  return ranks_with_place;
}

std::optional<int> Plan::active_rank(int world_rank) const {
  const std::vector<int> all = active();
  const auto found = std::lower_bound(all.begin(), all.end(), world_rank);
  if (found == all.end() || *found != world_rank) return std::nullopt;
  return static_cast<int>(found - all.begin());
}

MeshShape Plan::mesh() const {
  std::vector<Cuboid> cuboids;
  for (const ReplicaPlan& replica : replicas) cuboids.push_back(replica.cuboid);
  if (place.empty()) return MeshShape(std::move(cuboids));
  const std::vector<int> all = active();
  std::vector<int> numbers;
  for (const int rank : place)
    numbers.push_back(
        static_cast<int>(std::lower_bound(all.begin(), all.end(), rank) - all.begin()));
  return MeshShape(std::move(cuboids), std::move(numbers));
}

std::vector<index_t> slab_sequences(const Plan& plan) {
  std::vector<index_t> result;
  for (const ReplicaPlan& replica : plan.replicas) {
    std::vector<index_t> slabs(static_cast<std::size_t>(replica.cuboid[0]), 0);
    for (const auto& leaf : replica.leaves)
      for (const index_t micro : leaf) {
        const Partition cut = replica.tokens_of(micro);
        for (index_t i = 0; i < cut.parts(); ++i) slabs[static_cast<std::size_t>(i)] += cut.size(i);
      }
    result.insert(result.end(), slabs.begin(), slabs.end());
  }
  return result;
}

}  // namespace t3d
