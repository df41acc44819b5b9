#include "hetero/cost/update_traffic.hpp"

#include "comm/cost.hpp"
#include "ops/adasum_tree.hpp"
#include "tensor3d/refined_routes.hpp"

namespace t3d {
namespace {

bool is_adasum(const Plan& plan) { return plan.aggregate.method == AggregateMethod::adasum; }
bool is_flat(const Plan& plan) {
  return is_adasum(plan) && plan.aggregate.algorithm == AggregateAlgorithm::flat;
}

/// Where every rank sums `count` fp64 numbers over all ranks with a place.
void add_world_sum(const RankView& rank, index_t count, TrafficTable& traffic) {
  traffic.add(Verb::all_reduce, Group::world,
              all_reduce_bytes(count, rank.ranks(), rank.number(), DType::f64));
}

void add_cuboid_sum(const RankView& rank, index_t count, index_t times, TrafficTable& traffic) {
  traffic.add(Verb::all_reduce, Group::cuboid,
              all_reduce_bytes(count, static_cast<int>(rank.p * rank.q * rank.r),
                               rank.number_in_cuboid(), DType::f64),
              times);
}

/// Mean, sum and flat: every shard summed over its replicas.
void add_all_reduces(const RankView& rank, TrafficTable& traffic) {
  const auto replicas = static_cast<int>(rank.plan.replicas.size());
  for (const BucketSize& size : bucket_sizes(rank))
    traffic.add(
        Verb::all_reduce, Group::d,
        all_reduce_bytes(size.shard, replicas, static_cast<int>(rank.coord.d), rank.accumulator),
        size.trained);
}

/// Gram where replicas are cut alike: leaves to the owner of each chunk, its result back to all.
void add_chunks(const RankView& rank, TrafficTable& traffic) {
  const index_t replicas = std::ssize(rank.plan.replicas);
  const index_t leaves = rank.plan.leaves_per_replica(), size = size_of(leaf_wire(rank));
  for (const BucketSize& bucket : bucket_sizes(rank)) {
    const auto begin = [&](int before) {
      return even_begin(bucket.shard, replicas, before, kLeafRowUnit);
    };
    const auto own = static_cast<int>(rank.coord.d);
    const index_t foreign = bucket.shard - (begin(own + 1) - begin(own));
    traffic.add(Verb::exchange, Group::d, foreign * leaves * size, bucket.trained);
    traffic.add(Verb::all_gather, Group::d,
                all_gather_traffic(static_cast<int>(replicas), own, leaf_wire(rank), begin).bytes,
                bucket.trained);
  }
}

/// The same over the common refinement of different cuboids.
void add_refined(const RankView& rank, TrafficTable& traffic) {
  const int here = rank.number();
  const index_t leaves = rank.plan.leaves_per_replica(), size = size_of(leaf_wire(rank));
  for (const auto& bucket : refined_routes(rank.plan, here)) {
    index_t out = 0, back = 0;
    for (const auto& [owner, route] : bucket->owners)
      if (owner != here) out += route.count * leaves;
    for (const auto& [holder, route] : bucket->holders)
      if (holder != here) back += route.count;
    traffic.add(Verb::exchange, Group::world, (out + back) * size);
  }
}

void add_aggregation(const RankView& rank, TrafficTable& traffic) {
  const Plan& plan = rank.plan;
  const bool alike = plan.alike();
  const bool gram = is_adasum(plan) && !is_flat(plan);
  if (alike && !gram)
    add_all_reduces(rank, traffic);
  else if (alike)
    add_chunks(rank, traffic);
  else
    add_refined(rank, traffic);
  const index_t groups = group_count(plan);
  if (is_flat(plan)) add_world_sum(rank, 2 * groups, traffic);
  const index_t leaves = std::ssize(plan.replicas) * plan.leaves_per_replica();
  if (gram) add_world_sum(rank, groups * adasum::packed_size(leaves), traffic);
}

/// Every matrix of a block to its owner, and back.
void add_muon(const RankView& rank, index_t times, TrafficTable& traffic) {
  const std::vector<HiddenMatrix> matrices = hidden_matrices(rank.model);
  const MatrixOwners& owners = rank.memo->owners(rank.model, rank.cut);
  const int here = rank.number_in_cuboid();
  const auto sizes = bucket_sizes(rank);
  index_t elements = 0;
  for (std::size_t at = 0; at < matrices.size(); ++at) {
    const index_t own = sizes[kFirstMatrix + at % kBlockMatrices].shard;
    const index_t all = matrices[at].rows * matrices[at].cols;
    elements += owners.owner[at] == here ? all - own : own;
  }
  traffic.add(Verb::exchange, Group::cuboid, times * elements * size_of(rank.accumulator));
}

void add_optimizer(const RankView& rank, TrafficTable& traffic) {
  // Local updates: an optimizer for each leaf, which measures its gradient first.
  const index_t times = rank.plan.updates_locally() ? rank.plan.leaves_per_replica() : 1;
  if (rank.plan.updates_locally()) add_cuboid_sum(rank, 1, times, traffic);
  if (rank.plan.optimizer == OptimizerKind::muon) add_muon(rank, times, traffic);
  if (rank.plan.optimizer != OptimizerKind::lamb) return;
  index_t tensors = 0;
  for (const BucketSize& size : bucket_sizes(rank)) tensors += size.copies * size.entries;
  add_cuboid_sum(rank, 2 * tensors, times, traffic);
}

}  // namespace

DType leaf_wire(const RankView& rank) {
  const bool narrow = is_adasum(rank.plan) && rank.plan.aggregate.wire == WireType::bf16;
  return narrow ? DType::bf16 : rank.accumulator;
}

index_t group_count(const Plan& plan) {
  const ModelConfig& m = plan.model;
  const index_t norm = m.norm_vectors();
  const index_t outside =
      1 + (m.position == Position::learned ? 1 : 0) + norm + (m.tied_embeddings ? 0 : 1);
  switch (plan.aggregate.per) {
    case GroupBy::model: return 1;
    case GroupBy::block: return outside + m.layers;
    case GroupBy::tensor: break;
  }
  const index_t biases = (m.qkv_bias() ? 1 : 0) + (m.proj_bias() ? 1 : 0) + (m.mlp_bias() ? 2 : 0);
  index_t adapters = 0;
  for (const BlockLinear linear : kBlockLinears)
    if (!adapted_segments(m, linear).empty()) adapters += 2;
  return outside + m.layers * (4 + 2 * norm + biases + adapters + (m.qk_norm ? 2 : 0));
}

std::vector<HiddenMatrix> hidden_matrices(const ModelConfig& m) {
  const index_t heads = m.query_columns(), kv = 2 * m.kv_heads * m.head_size();
  const index_t up = m.activation == Activation::swiglu ? 2 * m.ffn : m.ffn;
  std::vector<HiddenMatrix> all;
  for (index_t layer = 0; layer < m.layers; ++layer)
    all.insert(all.end(),
               {{heads + kv, m.hidden}, {m.hidden, heads}, {up, m.hidden}, {m.hidden, m.ffn}});
  return all;
}

MatrixOwners muon_owners(const std::vector<HiddenMatrix>& matrices, const ReplicaPlan& replica) {
  std::vector<double> costs;
  for (const auto& [rows, cols] : matrices) costs.push_back(newton_schulz_flops(rows, cols, 1));
  const auto& [p, q, r] = replica.cuboid;
  std::vector<double> speeds(replica.whole.begin(), replica.whole.end());
  if (speeds.empty()) speeds.assign(static_cast<std::size_t>(p * q * r), 1.0);
  return choose_owners(costs, speeds);
}

void add_update(const RankView& rank, TrafficTable& traffic) {
  add_aggregation(rank, traffic);
  add_optimizer(rank, traffic);
}

}  // namespace t3d
