// KvCache: keys and values of the tokens that were read and written so far, for each block, of the
// sequences and key-value heads that this rank computes. In the activations' type.
#pragma once
#include <vector>

#include "tensor3d/context.hpp"
#include "tensor3d/model_shape.hpp"

namespace t3d {

class KvCache {
 public:
  /// Room for `sequences` of up to `capacity` tokens on this rank. Error(unavailable) that says how
  /// much is needed, where there is too little.
  KvCache(const Context& context, const ModelShape& shape, index_t sequences, index_t capacity);

  /// [sequences * capacity, kv heads * head size] each
  struct Layer {
    TensorView keys, values;
  };
  [[nodiscard]] Layer layer(index_t number) const;
  [[nodiscard]] index_t capacity() const { return capacity_; }

 private:
  index_t capacity_;
  std::vector<Tensor> keys_, values_;
};

/// Columns of the keys, and of the values, that the rank at `coord` computes.
[[nodiscard]] index_t kept_columns(const ModelShape& shape, const MeshShape& mesh,
                                   const Coord& coord);
/// Bytes that a cache takes there.
[[nodiscard]] index_t kept_bytes(const ModelShape& shape, const MeshShape& mesh, const Coord& coord,
                                 DType activation, index_t sequences, index_t capacity);

}  // namespace t3d
