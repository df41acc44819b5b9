#include "train/aggregate/leaf_exchange.hpp"

namespace t3d {

void combine_leaves(const Context& context, LeafExchange& exchange,
                    const std::vector<std::size_t>& buckets, const std::vector<TensorView>& shards,
                    ConstTensorView coefficients) {
  for (const std::size_t bucket : buckets) {
    context.ops.combine(context.queue, exchange.arrive(bucket), exchange.segments(bucket),
                        coefficients, exchange.result(bucket, shards[bucket]));
    exchange.spread(bucket);
  }
  for (const std::size_t bucket : buckets) exchange.collect(bucket, shards[bucket]);
}

std::unique_ptr<LeafExchange> make_leaf_exchange(const AggregateSetup& setup, DType wire) {
  return setup.plan.alike() ? make_chunk_exchange(setup, wire) : make_refined_exchange(setup, wire);
}

}  // namespace t3d
