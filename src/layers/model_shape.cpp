#include "layers/model_shape.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace t3d {
namespace {

Partition feature_partition(const char* name, index_t length, index_t parts,
                            const std::vector<double>& weights, index_t unit) {
  if (weights.empty()) return Partition::even(name, length, parts, unit);
  return Partition::weighted(name, length, weights, unit);
}

// Largest number of (sequence, group) pairs that one rank of a slab holds under each layout.
AttentionCut choose_cut(const MeshConfig& mesh, const ModelShape& shape, index_t sequences) {
  if (mesh.attention == AttentionRule::sequences) return AttentionCut::sequences;
  if (mesh.attention == AttentionRule::heads) return AttentionCut::heads;
  const auto ceil_div = [](index_t a, index_t b) { return (a + b - 1) / b; };
  const index_t rows = shape.tokens(sequences, 1).largest();
  const index_t by_sequences = ceil_div(rows, shape.r) * shape.groups.largest();
  const index_t by_heads = rows * ceil_div(shape.groups.largest(), shape.r);
  return by_heads < by_sequences ? AttentionCut::heads : AttentionCut::sequences;
}

}  // namespace

index_t feature_unit(index_t length, index_t parts) {
  return parts > 1 && length >= 8 * 16 * parts ? 16 : 1;
}

ModelShape::ModelShape(const ModelConfig& config, const MeshConfig& mesh, const MeshShape& shape,
                       index_t sequences)
    : model(config),
      token_weights(mesh.tokens),
      slabs(shape.extent(Axis::i)),
      q(shape.extent(Axis::j)),
      r(shape.extent(Axis::k)) {
  const auto expect = [](const std::vector<double>& weights, index_t parts, const char* key) {
    if (!weights.empty() && static_cast<index_t>(weights.size()) != parts)
      throw_error(ExitCode::config, "mesh.{} has {} widths, its axis has {} ranks", key,
                  weights.size(), parts);
  };
  expect(mesh.tokens, slabs, "tokens");
  expect(mesh.outputs, q, "outputs");
  expect(mesh.contractions, r, "contractions");
  hidden = feature_partition("hidden", model.hidden, r, mesh.contractions,
                             feature_unit(model.hidden, r));
  groups = feature_partition("groups", model.kv_heads, q, mesh.outputs, 1);
  ffn = feature_partition("ffn", model.ffn, q, mesh.outputs, feature_unit(model.ffn, q));
  vocab = feature_partition("vocab", model.vocab, q, mesh.outputs, feature_unit(model.vocab, q));
  attention = choose_cut(mesh, *this, sequences);
}

Partition ModelShape::tokens(index_t sequences, index_t length) const {
  const Partition cut = token_weights.empty()
                            ? Partition::even("tokens", sequences, slabs)
                            : Partition::weighted("tokens", sequences, token_weights);
  return cut.scaled(length, "tokens");
}

Features ModelShape::hidden_features() const { return {hidden, {1}, false, 1}; }

Features ModelShape::qkv_features(index_t length) const {
  const index_t size = model.head_size();
  return {groups,
          {query_heads_per_group() * size, size, size},
          attention == AttentionCut::heads,
          length};
}

Features ModelShape::head_features(index_t length) const {
  return {groups,
          {query_heads_per_group() * model.head_size()},
          attention == AttentionCut::heads,
          length};
}

Features ModelShape::up_features() const {
  if (model.activation == Activation::swiglu) return {ffn, {1, 1}, false, 1};
  return {ffn, {1}, false, 1};
}

Features ModelShape::ffn_features() const { return {ffn, {1}, false, 1}; }

Layout ModelShape::residual(const Partition& tokens) const {
  return {cut(tokens, Axis::i, Axis::j), cut(hidden, Axis::k)};
}

index_t parameter_count(const ModelConfig& m) {
  const index_t size = m.head_size();
  const index_t qkv = (m.heads + 2 * m.kv_heads) * size;
  const index_t up = m.activation == Activation::swiglu ? 2 * m.ffn : m.ffn;
  const index_t norm = m.norm == NormKind::layer && m.bias ? 2 * m.hidden : m.hidden;
  index_t block = m.hidden * (qkv + m.heads * size + up + m.ffn) + 2 * norm;
  if (m.bias) block += qkv + up + 2 * m.hidden;
  index_t total = m.layers * block + norm + m.vocab * m.hidden;
  if (m.position == Position::learned) total += m.context * m.hidden;
  if (!m.tied_embeddings) total += m.vocab * m.hidden;
  return total;
}

double flops_per_token(const ModelConfig& m, bool full_square) {
  // An untied input table is looked up, not multiplied.
  const index_t multiplied = parameter_count(m) - (m.tied_embeddings ? 0 : m.vocab * m.hidden);
  const double attention =
      static_cast<double>(m.layers * m.heads * m.head_size()) * static_cast<double>(m.context);
  return 6.0 * static_cast<double>(multiplied) + (full_square ? 12.0 : 6.0) * attention;
}

}  // namespace t3d
