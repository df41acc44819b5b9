#include "train/aggregate/aggregate.hpp"

namespace t3d {

std::unique_ptr<Aggregation> make_aggregation(const AggregateSetup& setup) {
  if (setup.options.method != AggregateMethod::adasum && !setup.context.mesh.shape().alike())
    return make_refined_aggregation(setup);
  if (setup.options.method != AggregateMethod::adasum || setup.options.algorithm == AggregateAlgorithm::flat)
    return make_all_reduce_aggregation(setup);
  return make_gram_aggregation(setup);
}

}  // namespace t3d
