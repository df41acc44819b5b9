#include "config/make_plan.hpp"

#include <string_view>

#include "config/config_schema.hpp"

namespace t3d {
namespace {

// Every chunk of logits reads and writes the gradient of the head's weight once, and a GPU's
// products are fast beside its memory: few, large ones.
constexpr index_t kGpuLogitsBytes = index_t{1} << 30;

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

ReplicaShape replica_shape(const Config& config, const Cuboid& cuboid, index_t sequences) {
  const ModelConfig& m = config.model;
  const MeshConfig& mesh = config.mesh;
  const auto& [p, q, r] = cuboid;
  ReplicaShape shape;
  shape.cuboid = cuboid;
  shape.sequences = sequences;
  shape.token_speeds = mesh.tokens;
  shape.hidden = cut("hidden", m.hidden, r, mesh.contractions, feature_unit(m.hidden, r));
  shape.groups = cut("groups", m.kv_heads, q, mesh.outputs);
  shape.ffn = cut("ffn", m.ffn, q, mesh.outputs, feature_unit(m.ffn, q));
  shape.vocab = cut("vocab", m.vocab, q, mesh.outputs, feature_unit(m.vocab, q));
  return shape;
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

PlanRecipe plan_recipe(const Config& config, const PlanFacts& facts) {
  PlanRecipe recipe;
  Plan& plan = recipe.base;
  plan.ranks = facts.ranks;
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
  recipe.sequences = config.batch.sequences;
  recipe.micro = config.batch.micro;
  const bool adasum = config.aggregate.method == AggregateMethod::adasum;
  recipe.leaves = adasum ? config.aggregate.leaves : 1;
  recipe.attention = config.mesh.attention;
  recipe.reduce = config.precision.reduce;
  recipe.keep = config.mesh.keep;
  recipe.gather_budget_mib = config.mesh.gather_budget_mib;
  return recipe;
}

Plan make_plan(const Config& config, const PlanFacts& facts) {
  const std::vector<Cuboid> cuboids = cuboids_of(config.mesh);
  const Partition shares =
      cut("batch", config.batch.sequences, config.mesh.replicas, config.batch.shares);
  PlanShape shape;
  shape.place = config.mesh.place;
  for (std::size_t d = 0; d < cuboids.size(); ++d)
    shape.replicas.push_back(
        replica_shape(config, cuboids[d], shares.size(static_cast<index_t>(d))));
  return build_plan(plan_recipe(config, facts), shape);
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
