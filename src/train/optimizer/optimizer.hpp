// Optimizers on flat shards of parameter buckets: fp32 (fp64) master weights and state, each
// element on exactly one rank of a cuboid. Weight decay only where the parameter asks for it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/options.hpp"
#include "tensor3d/param_bucket.hpp"
#include "train/optimizer/param_groups.hpp"
#include "train/optimizer/state_buffers.hpp"

namespace t3d {

/// What one step hands to the optimizer.
struct OptimizerStep {
  index_t number = 1;  // counts from 1
  double lr = 0;
  double grad_scale = 1;   // gradients count times grad_scale * factor
  ConstTensorView factor;  // [1,1] fp64 on the device; empty data = 1
  /// [1, groups] fp64 on the device: each group's learning rate counts times its gain. Empty data =
  /// 1.
  ConstTensorView gains;
  const ParamGroups* groups = nullptr;  // of the gains
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Updates the master weights from the gradient shards, which it may overwrite. Collective over
  /// the cuboid.
  virtual void update(const OptimizerStep& step) = 0;
  /// What stands for `lr` where this entry is concerned.
  [[nodiscard]] virtual double learning_rate(const ParamEntry&, double lr) const { return lr; }
  [[nodiscard]] virtual std::vector<StateBuffers*> state() = 0;
};

/// Of kind options.kind.
[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(const Context& context, const Plan& plan,
                                                        const OptimizerConfig& options,
                                                        const std::vector<ParamBucket*>& buckets);

/// Sum of squares of all gradient shards of this rank, added to result [1,1] fp64 on the device.
void add_gradient_squares(const Context& context, const std::vector<ParamBucket*>& buckets,
                          TensorView result);

}  // namespace t3d
