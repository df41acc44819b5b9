// RMSNorm of every head of the queries or of the keys (Henry et al. 2020; as in Qwen 3), with one
// weight for all heads. A head lies whole on its rank, so no messages are needed; the weight's
// gradient is summed over the cuboid with its bucket.
#pragma once
#include <string>

#include "tensor3d/context.hpp"
#include "tensor3d/param_bucket.hpp"

namespace t3d {

class HeadNorm {
 public:
  /// The weight is name + ".weight" [head size] of `vectors`, the bucket over the cuboid.
  HeadNorm(const Context& context, const std::string& name, double eps, ParamBucket& vectors);

  struct Saved {
    Tensor input;    // [rows * n, head size] before the norm
    Tensor moments;  // [rows * n, 2] 0, 1/rms
  };
  /// `heads` [rows, n * head size], in place.
  void forward(TensorView heads, Saved* saved);
  /// `dheads`, the gradient behind the norm, becomes that before it; adds to the weight's.
  void backward(TensorView dheads, Saved& saved);

 private:
  const Context& context_;
  double eps_;
  ParamBucket& vectors_;
  int gamma_;
};

}  // namespace t3d
