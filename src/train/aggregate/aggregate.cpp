#include "train/aggregate/aggregate.hpp"

namespace t3d {

std::unique_ptr<Aggregation> make_aggregation(const AggregateSetup& setup) {
  if (setup.plan.aggregate.method != AggregateMethod::adasum && !setup.plan.alike())
    return make_refined_aggregation(setup);
  if (setup.plan.aggregate.method != AggregateMethod::adasum ||
      setup.plan.aggregate.algorithm == AggregateAlgorithm::flat)
    return make_all_reduce_aggregation(setup);
  return make_gram_aggregation(setup);
}

}  // namespace t3d
