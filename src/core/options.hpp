// Options of the model and of training, as the input gives them, with every default filled in.
// Plain data; names, types, checks and help are in config/config_schema.cpp. What only app
// reads stands in config/config.hpp.
#pragma once
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "core/choices.hpp"
#include "core/types.hpp"

namespace t3d {

/// Of model.rope_scaling; the names are those of Hugging Face's config.json behind "rope_".
struct RopeOptions {
  double base = 10000;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1;                                 // of all but none
  index_t original_context = 0;                      // of llama3 and yarn; tokens
  double low_freq_factor = 1, high_freq_factor = 4;  // of llama3
  double beta_fast = 32, beta_slow = 1;              // of yarn
  double attention_factor = 0;                       // of yarn; 0 = 0.1 ln(factor) + 1
  friend bool operator==(const RopeOptions&, const RopeOptions&) = default;
};

/// Parts of the linears of a block: of attention (o is its projection) and of the feed-forward
/// part (gate only with swiglu).
inline constexpr std::string_view kLoraTargets[] = {"q", "k", "v", "o", "gate", "up", "down"};

/// Of [lora]: adapters of low rank beside matrices that stay as they are (Hu et al. 2021, section
/// 4.1): W + alpha / rank * B A with A [rank, in], B [out, rank].
struct LoraOptions {
  index_t rank = 0;                            // 0 = none
  double alpha = 0;                            // 0 = rank
  std::vector<std::string> targets{"q", "v"};  // words of kLoraTargets
  [[nodiscard]] bool on() const { return rank > 0; }
  [[nodiscard]] double factor() const { return alpha > 0 ? alpha / static_cast<double>(rank) : 1; }
  [[nodiscard]] bool adapts(std::string_view target) const {
    return on() && std::find(targets.begin(), targets.end(), target) != targets.end();
  }
  /// The same adapters: the order of targets does not matter.
  friend bool operator==(const LoraOptions& a, const LoraOptions& b) {
    return a.rank == b.rank && (!a.on() || a.factor() == b.factor()) &&
           std::all_of(
               std::begin(kLoraTargets), std::end(kLoraTargets),
               [&](std::string_view target) { return a.adapts(target) == b.adapts(target); });
  }
};

struct ModelConfig {
  std::string preset;
  index_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, ffn = 0, vocab = 0, context = 0;
  index_t max_context = 0;   // that the model allows, for whoever gets it; 0 = context
  index_t head_columns = 0;  // model.head_size; 0 = hidden / heads
  NormKind norm = NormKind::layer;
  Activation activation = Activation::gelu_tanh;
  Position position = Position::learned;
  RopeOptions rope;
  double norm_eps = 1e-5;
  bool qk_norm = false;  // rmsnorm of every head of the queries and keys, before the rotation
  bool bias = true;      // biases of linears (and of layernorm)
  AttentionBias attention_bias = AttentionBias::as_bias;
  bool tied_embeddings = true;
  double dropout = 0;
  double init_std = 0.02;
  std::vector<std::string> freeze;  // patterns of parameters' names that are not trained
  LoraOptions lora;
  [[nodiscard]] index_t head_size() const {
    return head_columns > 0 ? head_columns : hidden / heads;
  }
  /// Columns of the queries of all heads: the input of the projection.
  [[nodiscard]] index_t query_columns() const { return heads * head_size(); }
  [[nodiscard]] bool qkv_bias() const {
    return attention_bias == AttentionBias::as_bias ? bias : attention_bias != AttentionBias::none;
  }
  [[nodiscard]] bool proj_bias() const {
    return attention_bias == AttentionBias::as_bias ? bias : attention_bias == AttentionBias::all;
  }
  [[nodiscard]] bool mlp_bias() const { return bias; }
  /// Vectors of a norm over the hidden dimension: its weight and, where there is one, its bias.
  [[nodiscard]] index_t norm_vectors() const { return norm == NormKind::layer && bias ? 2 : 1; }
};

struct PrecisionConfig {
  ComputeType compute = ComputeType::fp32;
  MatmulType matmul = MatmulType::compute;
  ReduceType reduce = ReduceType::automatic;  // partial sums of activations
  BackendRule backend = BackendRule::automatic;
  EngineRule gemm_engine = EngineRule::automatic, attention_engine = EngineRule::automatic;
  bool tune = true;       // on GPUs: time the engines of each shape
  double loss_scale = 0;  // gradients travel multiplied by it; 0 = 1, with fp16 by trial
};

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::adamw;
  double lr = 3e-4, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1;
  double momentum = -1;  // negative = by kind
  bool nesterov = false;
  double adamw_lr = 0;  // muon: of what is no hidden matrix; 0 = lr
  MuonScale muon_scale = MuonScale::rms;
  index_t newton_schulz_steps = 5;
  double clip_norm = 1.0;  // 0 = off
  [[nodiscard]] double momentum_or_default() const {
    return momentum >= 0 ? momentum : kind == OptimizerKind::muon ? 0.95 : 0.9;
  }
};

struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::cosine;
  index_t warmup_steps = 0;
  double final_fraction = 0.1;
  double decay_fraction = 0.2;  // wsd: last part of the run
};

/// Of all replicas together, as many as the operators combine.
inline constexpr index_t kMostLeaves = 64;

struct AggregateConfig {
  AggregateMethod method = AggregateMethod::mean;
  AggregatePlacement placement = AggregatePlacement::automatic;  // of adasum
  AggregateAlgorithm algorithm = AggregateAlgorithm::automatic;  // of adasum
  GroupBy per = GroupBy::tensor;
  double reference_batch = 0;  // sequences; 0 = not given
  index_t leaves = 1;          // per replica
  LeafRule leaf = LeafRule::noise;
  WireType wire = WireType::fp32;
  double gain_exponent = -1;  // below 0: by the optimizer
};

}  // namespace t3d
