// LayerNorm / RMSNorm over a hidden dimension that is cut over k. Every rank sums its columns; the
// statistics of a row are merged as (count, mean, M2) by Chan's rule, never as E[x^2]-E[x]^2.
#pragma once
#include <string>

#include "tensor3d/context.hpp"
#include "tensor3d/param_bucket.hpp"

namespace t3d {

class Norm {
 public:
  /// gamma and, where there is one, beta are name + ".weight" and ".bias" of `vectors`, the bucket
  /// over plane (i,j).
  Norm(const Context& context, const std::string& name, NormKind kind, index_t length, double eps,
       ParamBucket& vectors);

  struct Saved {
    Tensor moments;  // [rows, 2] mean, 1/std
  };
  /// y of x's layout [T x H | i,j | k].
  [[nodiscard]] DistTensor forward(const DistTensor& x, Saved* saved);
  /// sum += x (a residual and its branch), then the norm of the sum.
  [[nodiscard]] DistTensor forward_sum(const DistTensor& x, DistTensor& sum, Saved* saved);
  /// dx += the gradient; adds to those of gamma and beta.
  void backward_add(const DistTensor& dy, const DistTensor& x, Saved& saved, DistTensor& dx);

 private:
  DistTensor run(const DistTensor& x, TensorView sum, Saved* saved);
  const Context& context_;
  NormKind kind_;
  index_t length_;
  double eps_;
  ParamBucket& vectors_;
  int gamma_, beta_;  // beta: -1 = none
};

}  // namespace t3d
