#include "tensor3d/model_shape.hpp"

#include <string_view>

#include "tensor3d/frozen.hpp"

namespace t3d {
namespace {

Features hidden_features(const ModelShape& shape) { return {shape.hidden(), {1}, false, false}; }

Features ffn_features(const ModelShape& shape, std::vector<index_t> segments) {
  return {shape.ffn(), std::move(segments), false, false};
}

// Where axis k cuts attention by sequences, the rows of q, k and v are cut in whole sequences.
Features head_features(const ModelShape& shape, std::vector<index_t> segments) {
  return {shape.groups(), std::move(segments), shape.cut.attention == AttentionCut::heads, true};
}

}  // namespace

LinearShape ModelShape::qkv() const {
  const index_t size = model.head_size();
  return linear_shape(Axis::j, head_features(*this, {query_heads_per_group() * size, size, size}),
                      hidden_features(*this));
}

LinearShape ModelShape::proj() const {
  return linear_shape(Axis::k, hidden_features(*this),
                      head_features(*this, {query_heads_per_group() * model.head_size()}));
}

LinearShape ModelShape::up() const {
  const bool gated = model.activation == Activation::swiglu;
  return linear_shape(
      Axis::j, ffn_features(*this, gated ? std::vector<index_t>{1, 1} : std::vector<index_t>{1}),
      hidden_features(*this));
}

LinearShape ModelShape::down() const {
  return linear_shape(Axis::k, hidden_features(*this), ffn_features(*this, {1}));
}

Layout ModelShape::residual(const Partition& tokens) const {
  return {t3d::cut(tokens, Axis::i, Axis::j), t3d::cut(hidden(), Axis::k)};
}

std::vector<std::string_view> lora_targets(const ModelConfig& model, BlockLinear linear) {
  switch (linear) {
    case BlockLinear::qkv: return {"q", "k", "v"};
    case BlockLinear::proj: return {"o"};
    case BlockLinear::down: return {"down"};
    case BlockLinear::up: break;
  }
  if (model.activation == Activation::swiglu) return {"gate", "up"};
  return {"up"};
}

std::vector<index_t> adapted_segments(const ModelConfig& model, BlockLinear linear) {
  const std::vector<std::string_view> names = lora_targets(model, linear);
  std::vector<index_t> result;
  for (std::size_t segment = 0; segment < names.size(); ++segment)
    if (model.lora.adapts(names[segment])) result.push_back(static_cast<index_t>(segment));
  return result;
}

index_t parameter_count(const ModelConfig& m) {
  const index_t qkv = m.query_columns() + 2 * m.kv_heads * m.head_size();
  const index_t up = m.activation == Activation::swiglu ? 2 * m.ffn : m.ffn;
  const index_t norm = m.norm_vectors() * m.hidden;
  index_t block = m.hidden * (qkv + m.query_columns() + up + m.ffn) + 2 * norm;
  if (m.qkv_bias()) block += qkv;
  if (m.proj_bias()) block += m.hidden;
  if (m.mlp_bias()) block += up + m.hidden;
  if (m.qk_norm) block += 2 * m.head_size();
  index_t total = m.layers * block + norm + m.vocab * m.hidden;
  if (m.position == Position::learned) total += m.context * m.hidden;
  if (!m.tied_embeddings) total += m.vocab * m.hidden;
  return total;
}

double flops_per_token(const ModelConfig& m, bool full_square) {
  // An untied input table is looked up, not multiplied.
  const index_t looked_up = m.tied_embeddings ? 0 : m.vocab * m.hidden;
  const ParameterCounts counts = parameter_counts(m);
  const index_t frozen = counts.all - counts.trained - (is_frozen(m, "wte.weight") ? looked_up : 0);
  const double attention =
      static_cast<double>(m.layers * m.heads * m.head_size()) * static_cast<double>(m.context);
  return 6.0 * static_cast<double>(counts.all - looked_up) - 2.0 * static_cast<double>(frozen) +
         (full_square ? 12.0 : 6.0) * attention;
}

}  // namespace t3d
