// ModelShape: how one model's dimensions are cut on one cuboid. Named partitions, each made once
// and shared by every layer, so that consecutive linears chain without redistribution. Pure
// arithmetic.
#pragma once
#include "core/config.hpp"
#include "tensor3d/layout.hpp"
#include "tensor3d/linear3d.hpp"

namespace t3d {

struct ModelShape {
  ModelConfig model;
  Partition hidden;                   // over k
  Partition groups;                   // KV groups over j: one kv head and its query heads
  Partition ffn;                      // over j
  Partition vocab;                    // over j
  std::vector<double> token_weights;  // over i; empty = even
  index_t slabs = 1, q = 1, r = 1;
  AttentionCut attention = AttentionCut::sequences;

  /// Throws a config Error that names what does not fit. `sequences`: of a full micro-batch, for
  /// the choice of the attention layout.
  ModelShape(const ModelConfig& model, const MeshConfig& mesh, const MeshShape& shape,
             index_t sequences);

  /// Rows of a micro-batch of `sequences` x `length` tokens over i, in whole sequences.
  [[nodiscard]] Partition tokens(index_t sequences, index_t length) const;
  [[nodiscard]] index_t query_heads_per_group() const { return model.heads / model.kv_heads; }

  // The sides of the four linears of a block.
  [[nodiscard]] Features hidden_features() const;              // residual stream
  [[nodiscard]] Features qkv_features(index_t length) const;   // out of qkv
  [[nodiscard]] Features head_features(index_t length) const;  // into proj
  [[nodiscard]] Features up_features() const;                  // out of up (gate | up)
  [[nodiscard]] Features ffn_features() const;                 // into down
  /// Layout of the residual stream.
  [[nodiscard]] Layout residual(const Partition& tokens) const;
};

/// Lattice of a feature dimension: 16 elements where every part still gets several units, else 1.
[[nodiscard]] index_t feature_unit(index_t length, index_t parts);

/// Parameters of the whole model.
[[nodiscard]] index_t parameter_count(const ModelConfig& model);
/// Training flops per token: 6 N + 6 L C T (causal half, as llm.c counts) or 6 N + 12 L C T (PaLM).
[[nodiscard]] double flops_per_token(const ModelConfig& model, bool full_square);

}  // namespace t3d
