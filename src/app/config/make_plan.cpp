#include "app/config/make_plan.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include "app/config/config_schema.hpp"
#include "hetero/cost/keep_cost.hpp"
#include "hetero/planner/slab_sequences.hpp"

namespace t3d {
namespace {

// Every chunk of logits reads and writes the gradient of the head's weight once, and a GPU's
// products are fast beside its memory: few, large ones.
constexpr index_t kGpuLogitsBytes = index_t{1} << 30;

/// Lattice of a feature dimension: 16 elements where every part still gets several units, else 1.
index_t feature_unit(index_t length, index_t parts) {
  return parts > 1 && length >= 8 * 16 * parts ? 16 : 1;
}

Partition cut(const char* name, index_t length, index_t parts, const std::vector<double>& weights,
              index_t unit = 1) {
  return weights.empty() ? Partition::even(name, length, parts, unit)
                         : Partition::weighted(name, length, weights, unit);
}

std::vector<Cuboid> cuboids_of(const MeshConfig& mesh) {
  std::vector<Cuboid> cuboids(static_cast<std::size_t>(mesh.replicas), mesh.cuboid);
  for (std::size_t at = 0; at < mesh.cuboids.size(); ++at)
    cuboids[at / 3][at % 3] = mesh.cuboids[at];
  return cuboids;
}

// Largest number of (sequence, group) pairs that one rank of a slab holds under each layout.
AttentionCut attention_cut(AttentionRule rule, const ReplicaPlan& replica, index_t sequences) {
  if (rule == AttentionRule::sequences) return AttentionCut::sequences;
  if (rule == AttentionRule::heads) return AttentionCut::heads;
  const auto ceil_div = [](index_t a, index_t b) { return (a + b - 1) / b; };
  const index_t r = replica.cuboid[2];
  const index_t rows = replica.tokens_of(sequences).largest();
  const index_t by_sequences = ceil_div(rows, r) * replica.groups.largest();
  const index_t by_heads = rows * ceil_div(replica.groups.largest(), r);
  return by_heads < by_sequences ? AttentionCut::heads : AttentionCut::sequences;
}

ReplicaPlan replica_plan(const Config& config, const Cuboid& cuboid, index_t sequences) {
  const ModelConfig& m = config.model;
  const MeshConfig& mesh = config.mesh;
  const auto& [p, q, r] = cuboid;
  ReplicaPlan replica;
  replica.cuboid = cuboid;
  replica.hidden = cut("hidden", m.hidden, r, mesh.contractions, feature_unit(m.hidden, r));
  replica.groups = cut("groups", m.kv_heads, q, mesh.outputs);
  replica.ffn = cut("ffn", m.ffn, q, mesh.outputs, feature_unit(m.ffn, q));
  replica.vocab = cut("vocab", m.vocab, q, mesh.outputs, feature_unit(m.vocab, q));
  replica.storage = Partition::even("storage", p, p);
  const bool adasum = config.aggregate.method == AggregateMethod::adasum;
  replica.leaves = even_leaves(sequences, adasum ? config.aggregate.leaves : 1, config.batch.micro);
  std::set<index_t> sizes;
  for (const auto& leaf : replica.leaves) sizes.insert(leaf.begin(), leaf.end());
  // A replica without samples still evaluates.
  if (sizes.empty()) sizes.insert(1);
  for (const index_t size : sizes) replica.tokens.push_back(cut("tokens", size, p, mesh.tokens));
  return replica;
}

// Replicas of one cuboid hold equal shards only where k cuts their attention alike: the one with
// the largest micro-batch decides for all of them.
void choose_attention(AttentionRule rule, Plan& plan) {
  const index_t largest = plan.largest_micro();
  for (ReplicaPlan& replica : plan.replicas) {
    const ReplicaPlan* decides = &replica;
    for (const ReplicaPlan& other : plan.replicas)
      if (other.cuboid == replica.cuboid && other.largest_micro() > decides->largest_micro())
        decides = &other;
    replica.attention = attention_cut(rule, *decides, largest);
  }
}

// Each low-precision addend is rounded once more: harmless for few ranks.
bool reduce_in_fp32(ReduceType reduce, const Plan& plan) {
  if (reduce == ReduceType::fp32) return true;
  if (reduce == ReduceType::compute || !is_half(plan.activation())) return false;
  index_t most = 1;
  for (const ReplicaPlan& replica : plan.replicas)
    most = std::max({most, replica.cuboid[1], replica.cuboid[2]});
  return most > 4;
}

// Weights first: they are gathered again for every micro-batch.
void choose_kept(const MeshConfig& mesh, Plan& plan) {
  const KeepCost cost = largest_keep_cost(plan);
  const auto weights = static_cast<double>(cost.weights_bytes);
  const auto inputs = static_cast<double>(cost.inputs_bytes);
  const double budget = mesh.gather_budget_mib * 1048576.0;
  const bool all = mesh.keep == KeepRule::all, by_budget = mesh.keep == KeepRule::automatic;
  plan.keep_weights = all || (by_budget && weights <= budget);
  plan.keep_inputs = all || (by_budget && inputs <= budget - (plan.keep_weights ? weights : 0.0));
}

/// Keys on which a plan depends.
bool shapes_plan(std::string_view key) {
  return key.starts_with("mesh.") || key.starts_with("batch.") || key.starts_with("aggregate.") ||
         key.starts_with("precision.") || key == "optimizer.kind";
}

/// Keys among them of which the plan holds nothing.
bool outside_plan(std::string_view key) {
  return key == "mesh.device" || key == "mesh.transport" || key == "precision.backend" ||
         key == "precision.loss_scale";
}

/// Other ranks need another shape; the rest belongs to the mathematics.
bool of_shape(std::string_view key) {
  return key.starts_with("mesh.") || key.starts_with("batch.");
}

/// The input from which the plan was made, with what the plan itself says of it.
Config input_of(const Plan& plan, Config config) {
  config.optimizer.kind = plan.optimizer;
  config.aggregate = plan.aggregate;
  config.precision.compute = plan.compute;
  config.precision.matmul = plan.matmul;
  config.precision.gemm_engine = plan.gemm_engine;
  config.precision.attention_engine = plan.attention_engine;
  config.precision.tune = plan.tune;
  return config;
}

}  // namespace

Plan make_plan(const Config& config, const PlanFacts& facts) {
  Plan plan;
  plan.ranks = facts.ranks;
  plan.place = config.mesh.place;
  plan.model = config.model;
  plan.optimizer = config.optimizer.kind;
  plan.aggregate = config.aggregate;
  plan.compute = config.precision.compute;
  plan.matmul = config.precision.matmul;
  plan.recompute = config.batch.recompute;
  plan.transport = facts.transport;
  plan.gemm_engine = config.precision.gemm_engine;
  plan.attention_engine = config.precision.attention_engine;
  plan.tune = config.precision.tune;
  if (facts.gpus) plan.logits_bytes = kGpuLogitsBytes;
  const std::vector<Cuboid> cuboids = cuboids_of(config.mesh);
  const Partition shares =
      cut("batch", config.batch.sequences, config.mesh.replicas, config.batch.shares);
  plan.replicas.clear();
  for (std::size_t d = 0; d < cuboids.size(); ++d)
    plan.replicas.push_back(replica_plan(config, cuboids[d], shares.size(static_cast<index_t>(d))));
  choose_attention(config.mesh.attention, plan);
  plan.reduce_in_fp32 = reduce_in_fp32(config.precision.reduce, plan);
  choose_kept(config.mesh, plan);
  plan.check();
  return plan;
}

bool keep_values(Config& config, const Origins& origins, int ranks, const Plan& before,
                 const Config& before_config) {
  bool changed = ranks != before.ranks;
  for (const Key& key : config_keys())
    changed = changed || (shapes_plan(key.full_name()) && origins.contains(key.full_name()) &&
                          value_text(key, config) != value_text(key, before_config));
  const Config values = input_of(before, before_config);
  for (const Key& key : config_keys()) {
    const std::string name = key.full_name();
    if (!shapes_plan(name) || outside_plan(name) || origins.contains(name)) continue;
    if (changed && of_shape(name)) continue;
    (void)set_value(key, parse_override(name + "=" + value_text(key, values)), config);
  }
  if (!changed) check_against_ranks(config, ranks, origins);
  return !changed;
}

Plan continued_plan(const Config& config, const Origins& origins, const PlanFacts& facts,
                    const Plan& before, const Config& before_config) {
  Config now = config;
  Plan plan = keep_values(now, origins, facts.ranks, before, before_config) ? before
                                                                            : make_plan(now, facts);
  plan.transport = facts.transport;
  return plan;
}

}  // namespace t3d
