#include "hetero/planner/build_plan.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "hetero/cost/keep_cost.hpp"
#include "hetero/planner/slab_sequences.hpp"
#include "hetero/solve/apportion.hpp"

namespace t3d {
namespace {

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

/// A micro-batch of `sequences` over the slabs, so that the last one to end ends early.
Partition token_cut(const ReplicaShape& shape, index_t sequences) {
  const index_t p = shape.cuboid[0];
  if (shape.token_speeds.empty()) return Partition::even("tokens", sequences, p);
  return Partition::from_sizes("tokens", min_max_apportion(sequences, shape.token_speeds));
}

ReplicaPlan replica_plan(const PlanRecipe& recipe, const ReplicaShape& shape) {
  const ModelConfig& m = recipe.base.model;
  const auto& [p, q, r] = shape.cuboid;
  const auto even = [](const char* name, index_t length, index_t parts) {
    return Partition::even(name, length, parts, feature_unit(length, parts));
  };
  ReplicaPlan replica;
  replica.cuboid = shape.cuboid;
  replica.hidden = shape.hidden.value_or(even("hidden", m.hidden, r));
  replica.groups = shape.groups.value_or(Partition::even("groups", m.kv_heads, q));
  replica.ffn = shape.ffn.value_or(even("ffn", m.ffn, q));
  replica.vocab = shape.vocab.value_or(even("vocab", m.vocab, q));
  replica.storage = shape.storage.empty() ? Partition::even("storage", p, p)
                                          : Partition::from_sizes("storage", shape.storage);
  replica.whole = shape.whole;
  replica.leaves = even_leaves(shape.sequences, recipe.leaves, recipe.micro);
  std::set<index_t> sizes;
  for (const auto& leaf : replica.leaves) sizes.insert(leaf.begin(), leaf.end());
  // A replica without samples still evaluates.
  if (sizes.empty()) sizes.insert(1);
  for (const index_t size : sizes) replica.tokens.push_back(token_cut(shape, size));
  return replica;
}

// Replicas of one cuboid hold equal shards only where k cuts their attention alike: the one with
// the largest micro-batch decides for all of them.
void choose_attention(AttentionRule rule, Plan& plan) {
  const index_t largest = plan.largest_micro();
  std::map<Cuboid, const ReplicaPlan*> decides;
  for (const ReplicaPlan& replica : plan.replicas) {
    const ReplicaPlan*& best = decides[replica.cuboid];
    if (best == nullptr || replica.largest_micro() > best->largest_micro()) best = &replica;
  }
  for (ReplicaPlan& replica : plan.replicas)
    replica.attention = attention_cut(rule, *decides.at(replica.cuboid), largest);
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
void choose_kept(const PlanRecipe& recipe, Plan& plan) {
  const KeepCost cost = largest_keep_cost(plan);
  const auto weights = static_cast<double>(cost.weights_bytes);
  const auto inputs = static_cast<double>(cost.inputs_bytes);
  const double budget = recipe.gather_budget_mib * 1048576.0;
  const bool all = recipe.keep == KeepRule::all, by_budget = recipe.keep == KeepRule::automatic;
  plan.keep_weights = all || (by_budget && weights <= budget);
  plan.keep_inputs = all || (by_budget && inputs <= budget - (plan.keep_weights ? weights : 0.0));
}

}  // namespace

index_t feature_unit(index_t length, index_t parts) {
  return parts > 1 && length >= 8 * 16 * parts ? 16 : 1;
}

Plan build_plan(const PlanRecipe& recipe, const PlanShape& shape) {
  Plan plan = recipe.base;
  plan.place = shape.place;
  plan.replicas.clear();
  plan.replicas.reserve(shape.replicas.size());
  for (std::size_t d = 0; d < shape.replicas.size(); ++d)
    if (d > 0 && shape.replicas[d] == shape.replicas[d - 1])
      plan.replicas.push_back(plan.replicas.back());
    else
      plan.replicas.push_back(replica_plan(recipe, shape.replicas[d]));
  choose_attention(recipe.attention, plan);
  plan.reduce_in_fp32 = reduce_in_fp32(recipe.reduce, plan);
  choose_kept(recipe, plan);
  plan.check();
  return plan;
}

}  // namespace t3d
