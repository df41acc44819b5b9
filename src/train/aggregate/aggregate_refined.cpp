// Mean and sum of replicas that cut the model differently. No group holds the same shard, so there
// is nothing to all-reduce: as for Adasum by Gram matrices, every rank receives its own columns of
// all leaves and combines them; only the coefficients are known beforehand.
#include "train/aggregate/leaf_exchange.hpp"
#include "train/device_numbers.hpp"

namespace t3d {
namespace {

class RefinedAggregation final : public Aggregation {
 public:
  explicit RefinedAggregation(const AggregateSetup& setup)
      : context_(setup.context),
        exchange_(make_leaf_exchange(setup, context_.accumulator())),
        sum_(setup.plan.aggregate.method == AggregateMethod::sum),
        groups_(setup.groups.count()),
        leaves_(setup.leaves),
        coefficients_(zeros(context_, 1, groups_ * leaves_.count())),
        buckets_(setup.groups.trained()),
        shards_(setup.buckets.size()) {
    T3D_CHECK(leaves_.per_replica == 1, "{} leaves per replica", leaves_.per_replica);
    set_weights(leaves_.weights);
  }
  // The weights, or their shares in the total, for each group.
  void set_weights(const std::vector<double>& weights) override {
    leaves_.weights = weights;
    const double total = sum_ ? 1 : leaves_.total();
    std::vector<double> all;
    for (index_t group = 0; group < groups_; ++group)
      for (const double weight : weights) all.push_back(weight / total);
    write_numbers(context_, all, coefficients_);
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
    combine_leaves(context_, *exchange_, buckets_, shards_, all.reshaped(groups_, leaves_.count()));
  }
  [[nodiscard]] std::string describe() const override { return "refined"; }

 private:
  const Context& context_;
  std::unique_ptr<LeafExchange> exchange_;
  bool sum_;
  index_t groups_;
  Leaves leaves_;
  Tensor coefficients_;
  std::vector<std::size_t> buckets_;
  std::vector<TensorView> shards_;
};

}  // namespace

std::unique_ptr<Aggregation> make_refined_aggregation(const AggregateSetup& setup) {
  return std::make_unique<RefinedAggregation>(setup);
}

}  // namespace t3d
