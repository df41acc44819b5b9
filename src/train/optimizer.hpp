// Optimizers on flat shares of parameter buckets: fp32 (fp64) master weights and state, each
// element on exactly one rank of a cuboid. Weight decay only where the parameter asks for it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "tensor3d/param_bucket.hpp"

namespace t3d {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Updates the master weights from gradient_shard() * grad_scale * factor; `step` counts from 1.
  /// `factor` [1,1] fp64 on the device.
  virtual void update(index_t step, double lr, double grad_scale, ConstTensorView factor) = 0;

  /// One kind of state per parameter element ("m", "v", "momentum"): a share-sized buffer per
  /// bucket.
  struct State {
    std::string kind;
    std::vector<TensorView> shards;  // like the buckets
  };
  [[nodiscard]] virtual std::vector<State> state() = 0;
};

[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(const Context& context,
                                                        const OptimizerConfig& options,
                                                        const std::vector<ParamBucket*>& buckets);

/// Sum of squares of all gradient shares of this rank, added to result [1,1] fp64 on the device.
void add_gradient_squares(const Context& context, const std::vector<ParamBucket*>& buckets,
                          TensorView result);

}  // namespace t3d
