#include "train/optimizer/optimizer.hpp"

#include "core/error.hpp"
#include "train/optimizer/optimizer_shared.hpp"

namespace t3d {

std::unique_ptr<Optimizer> make_optimizer(const Context& context, const Plan& plan,
                                          const OptimizerConfig& options,
                                          const std::vector<ParamBucket*>& buckets) {
  switch (options.kind) {
    case OptimizerKind::sgd: return make_sgd(context, options, buckets);
    case OptimizerKind::lamb: return make_lamb(context, options, buckets);
    case OptimizerKind::muon: return make_muon(context, plan, options, buckets);
    case OptimizerKind::adamw: break;
  }
  return make_adamw(context, options, buckets);
}

void add_gradient_squares(const Context& context, const std::vector<ParamBucket*>& buckets,
                          TensorView result) {
  for (ParamBucket* bucket : buckets)
    if (!bucket->frozen()) context.ops.sum_squares(context.queue, bucket->gradient_shard(), result);
}

}  // namespace t3d
