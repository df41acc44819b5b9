// ModelShape: how one model's dimensions are cut on one cuboid, as the plan says. Named partitions,
// each made once and shared by every layer, so that consecutive linears chain without
// redistribution. Pure arithmetic.
#pragma once
#include <array>
#include <string_view>

#include "core/plan.hpp"
#include "tensor3d/features.hpp"

namespace t3d {

struct ModelShape {
  ModelConfig model;
  ReplicaPlan cut;

  ModelShape(const ModelConfig& model_, const ReplicaPlan& cut_) : model(model_), cut(cut_) {}

  [[nodiscard]] const Partition& hidden() const { return cut.hidden; }
  [[nodiscard]] const Partition& groups() const { return cut.groups; }
  [[nodiscard]] const Partition& ffn() const { return cut.ffn; }
  [[nodiscard]] const Partition& vocab() const { return cut.vocab; }
  /// Rows of a micro-batch of `sequences` x `length` tokens over i, in whole sequences.
  [[nodiscard]] Partition tokens(index_t sequences, index_t length) const {
    return cut.tokens_of(sequences).scaled(length, "tokens");
  }
  [[nodiscard]] index_t query_heads_per_group() const { return model.heads / model.kv_heads; }

  // The four linears of a block, and the residual stream between them.
  [[nodiscard]] LinearShape qkv() const;
  [[nodiscard]] LinearShape proj() const;
  [[nodiscard]] LinearShape up() const;  // gate | up with swiglu
  [[nodiscard]] LinearShape down() const;
  [[nodiscard]] Layout residual(const Partition& tokens) const;
};

/// The linears of a block, in the order of its weights.
enum class BlockLinear : int { qkv, proj, up, down };
inline constexpr std::array<BlockLinear, 4> kBlockLinears{BlockLinear::qkv, BlockLinear::proj,
                                                          BlockLinear::up, BlockLinear::down};
/// Words of kLoraTargets by segment of the linear's output.
[[nodiscard]] std::vector<std::string_view> lora_targets(const ModelConfig& model,
                                                         BlockLinear linear);
/// Segments of a linear's output that have an adapter, rising; empty: it has none.
[[nodiscard]] std::vector<index_t> adapted_segments(const ModelConfig& model, BlockLinear linear);

/// Parameters of the whole model, without adapters.
[[nodiscard]] index_t parameter_count(const ModelConfig& model);
/// Training flops per token: 6 N + 6 L C T (causal half, as llm.c counts) or 6 N + 12 L C T (PaLM);
/// 4 instead of 6 for frozen parameters, which have no gradients.
[[nodiscard]] double flops_per_token(const ModelConfig& model, bool full_square);

}  // namespace t3d
