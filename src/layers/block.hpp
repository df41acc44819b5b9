// One pre-norm transformer block. Starts and ends in the residual layout [T x H | i,j | k], so the
// residual additions are local.
//
//   x1 = x + dropout(attention(norm1(x)));   x2 = x1 + dropout(mlp(norm2(x1)))
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "layers/attention.hpp"
#include "layers/mlp.hpp"
#include "layers/norm.hpp"

namespace t3d {

/// Where a block's parameters are: four matrices of its own, and the vectors of all blocks.
struct BlockBuckets {
  ParamBucket &qkv, &proj, &up, &down;
  ParamBucket& inner_vectors;   // biases cut over j
  ParamBucket& hidden_vectors;  // norms and biases cut over k
  ParamBucket* head_vectors;    // norms of queries and keys; null = none
  AdapterBuckets adapters;
};

class Block {
 public:
  Block(const Context& context, index_t number, const ModelShape& shape,
        const BlockBuckets& buckets, bool recompute);

  struct Saved {
    DistTensor x, x1;
    Norm::Saved norm1, norm2;
    Attention::Saved attention;
    Mlp::Saved mlp;
  };
  /// With `saved` null nothing is kept (evaluation).
  [[nodiscard]] DistTensor forward(DistTensor x, const PassInfo& pass, Saved* saved);
  /// In place: the gradient of x2 becomes the gradient of x.
  void backward(DistTensor& dx, const PassInfo& pass, Saved& saved);

  /// Weight buckets in the order of use.
  [[nodiscard]] const std::vector<ParamBucket*>& buckets() const { return buckets_; }

 private:
  Block(const Context& context, const std::string& name, index_t number, const ModelShape& shape,
        const BlockBuckets& buckets, bool recompute);
  [[nodiscard]] DistTensor run(DistTensor x, const PassInfo& pass, Saved* saved);
  void drop(DistTensor& x, const PassInfo& pass, std::uint64_t place) const;
  [[nodiscard]] DistTensor branch_gradient(const DistTensor& dx, const PassInfo& pass,
                                           std::uint64_t place) const;

  const Context& context_;
  const ModelShape& shape_;
  std::uint64_t number_;
  bool recompute_;
  std::vector<ParamBucket*> buckets_;
  Norm norm1_, norm2_;
  Attention attention_;
  Mlp mlp_;
};

/// Masks this rank's box of an activation in the residual layout (a no-op when p is 0).
void residual_dropout(const Context& context, DistTensor& x, const PassInfo& pass, double p,
                      std::uint64_t place);

}  // namespace t3d
