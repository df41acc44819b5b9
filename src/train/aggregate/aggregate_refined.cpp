// Mean and sum of replicas that cut the model differently. No group holds the same shard, so there
// is nothing to all-reduce: as for Adasum by Gram matrices, every rank receives its own columns of
// all leaves and combines them; only the coefficients are known beforehand.
#include "train/aggregate/leaf_exchange.hpp"
#include "train/device_numbers.hpp"

namespace t3d {
namespace {

/// The weights, or their shares in the total, for each group.
Tensor coefficients_of(const AggregateSetup& setup) {
  const double total =
      setup.plan.aggregate.method == AggregateMethod::sum ? 1 : setup.leaves.total();
  std::vector<double> all;
  for (index_t group = 0; group < setup.groups.count(); ++group)
    for (const double weight : setup.leaves.weights) all.push_back(weight / total);
  return numbers_on_device(setup.context, all);
}

class RefinedAggregation final : public Aggregation {
 public:
  explicit RefinedAggregation(const AggregateSetup& setup)
      : context_(setup.context),
        exchange_(make_leaf_exchange(setup, context_.accumulator())),
        coefficients_(coefficients_of(setup)),
        leaves_(setup.leaves.count()),
        shards_(setup.buckets.size()) {
    T3D_CHECK(setup.leaves.per_replica == 1, "{} leaves per replica", setup.leaves.per_replica);
  }

  void keep(index_t, std::size_t, ConstTensorView) override {}
  void start(std::size_t bucket, TensorView shard) override {
    const PhaseClock::Scope scope(context_.clock, "aggregate");
    shards_[bucket] = shard;
    exchange_->send(bucket, shard);
  }
  void settle() override { exchange_->settle(); }
  void finish(double) override {
    const PhaseClock::Scope scope(context_.clock, "aggregate");
    const TensorView all = coefficients_;
    combine_leaves(context_, *exchange_, shards_, all.reshaped(all.cols / leaves_, leaves_));
  }
  [[nodiscard]] std::string describe() const override { return "refined"; }

 private:
  const Context& context_;
  std::unique_ptr<LeafExchange> exchange_;
  Tensor coefficients_;
  index_t leaves_;
  std::vector<TensorView> shards_;
};

}  // namespace

std::unique_ptr<Aggregation> make_refined_aggregation(const AggregateSetup& setup) {
  return std::make_unique<RefinedAggregation>(setup);
}

}  // namespace t3d
