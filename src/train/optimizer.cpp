#include "train/optimizer.hpp"

#include "core/error.hpp"
#include "train/optimizer_shared.hpp"

namespace t3d {

std::unique_ptr<Optimizer> make_optimizer(const Context& context, const OptimizerConfig& options,
                                          const std::vector<ParamBucket*>& buckets) {
  if (options.kind == "sgd") return make_sgd(context, options, buckets);
  if (options.kind == "lamb") return make_lamb(context, options, buckets);
  if (options.kind == "muon") return make_muon(context, options, buckets);
  T3D_CHECK(options.kind == "adamw", "optimizer {}", options.kind);
  return make_adamw(context, options, buckets);
}

void add_gradient_squares(const Context& context, const std::vector<ParamBucket*>& buckets,
                          TensorView result) {
  for (ParamBucket* bucket : buckets)
    context.ops.sum_squares(context.queue, bucket->gradient_shard(), result);
}

}  // namespace t3d
