#include "train/aggregate/aggregate.hpp"

namespace t3d {

bool has_noise(const Plan& plan) {
  return plan.aggregate.method == AggregateMethod::adasum &&
         plan.aggregate.algorithm != AggregateAlgorithm::flat;
}

std::unique_ptr<Aggregation> make_aggregation(const AggregateSetup& setup) {
  if (has_noise(setup.plan)) return make_gram_aggregation(setup);
  if (setup.plan.aggregate.method != AggregateMethod::adasum && !setup.plan.alike())
    return make_refined_aggregation(setup);
  return make_all_reduce_aggregation(setup);
}

}  // namespace t3d
