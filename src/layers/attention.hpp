// Attention: qkv linear, norms of queries and keys, rotary positions, softmax attention over whole
// local sequences, projection. Heads are cut over j and, over k, either whole sequences (layout A)
// or heads again (layout B); the core needs no messages.
//
//   h [T x H | i,j | k] -> qkv [T | i,(k) | groups j,(k)] -> out -> o [T x H | i,j | k]
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "layers/head_norm.hpp"
#include "layers/step_info.hpp"
#include "tensor3d/linear3d.hpp"
#include "tensor3d/model_shape.hpp"

namespace t3d {

class Attention {
 public:
  /// `number`: of the block. Vectors: buckets of the biases of qkv and of the projection, and of
  /// the heads' norms; null = the model has none.
  Attention(const Context& context, const std::string& name, index_t number,
            const ModelShape& shape, ParamBucket& qkv, ParamBucket& proj,
            ParamBucket* inner_vectors, ParamBucket* hidden_vectors, ParamBucket* head_vectors,
            const AdapterBuckets& adapters);

  struct Saved {
    DistTensor input, qkv, out;
    Tensor lse;
    HeadNorm::Saved q_norm, k_norm;
    Linear3d::Saved qkv_saved, proj_saved;
  };
  [[nodiscard]] DistTensor forward(DistTensor h, const PassInfo& pass, Saved* saved);
  [[nodiscard]] DistTensor backward(const DistTensor& dout, const PassInfo& pass, Saved& saved);

 private:
  [[nodiscard]] AttentionArgs arguments(const DistTensor& qkv, const PassInfo& pass) const;
  void rotate(DistTensor& qkv, const PassInfo& pass, bool inverse) const;
  [[nodiscard]] ConstTensorView rows_of(ConstTensorView numbers, const DistTensor& qkv) const;
  void attend(DistTensor& qkv, const PassInfo& pass, TensorView out, Tensor& lse);
  void keep(DistTensor& qkv, const PassInfo& pass) const;
  void attend_to_kept(DistTensor& qkv, const PassInfo& pass, TensorView out) const;
  [[nodiscard]] TensorView queries(DistTensor& qkv, const PassInfo& pass) const;
  [[nodiscard]] TensorView keys(DistTensor& qkv, const PassInfo& pass) const;

  const Context& context_;
  index_t number_;
  const ModelShape& shape_;
  Linear3d qkv_, proj_;
  std::optional<HeadNorm> q_norm_, k_norm_;
};

}  // namespace t3d
