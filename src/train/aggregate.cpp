#include "train/aggregate.hpp"

namespace t3d {

std::unique_ptr<Aggregation> make_aggregation(const AggregateSetup& setup) {
  if (setup.options.method != "adasum" && !setup.context.mesh.shape().alike())
    return make_refined_aggregation(setup);
  if (setup.options.method != "adasum" || setup.options.transport == "flat")
    return make_all_reduce_aggregation(setup);
  return setup.options.transport == "rvh" ? make_rvh_aggregation(setup)
                                          : make_gram_aggregation(setup);
}

}  // namespace t3d
