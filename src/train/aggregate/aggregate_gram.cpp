// Adasum by Gram matrices. Every leaf travels once (train/aggregate/leaf_exchange.hpp): each rank
// receives its own columns of everybody's leaves, adds its part of all dot products, and one small
// sum over all ranks makes the n x n Gram matrix of each group of parameters. From there every rank
// knows all coefficients of the tree (ops/adasum_tree.hpp), combines its columns with one rounding,
// and the results go to those who hold them.
//
//   start    exchange, bucket by bucket, while the backward pass goes on
//   finish   gram of all buckets | one all-reduce | coefficients | combine and spread, by bucket
//
// Coefficients wait for the last bucket, although they do not depend on other groups: a leaf with
// a number that is not finite anywhere is left out of the whole step, and nothing is done twice.
// Memory: the received columns, together as large as the leaves.
#include "ops/adasum_tree.hpp"
#include "train/aggregate/leaf_exchange.hpp"
#include "train/device_numbers.hpp"

namespace t3d {
namespace {

class GramAggregation final : public Aggregation {
 public:
  explicit GramAggregation(const AggregateSetup& setup)
      : context_(setup.context),
        groups_(setup.groups),
        leaves_(setup.leaves),
        store_(context_, leaves_.per_replica),
        exchange_(make_leaf_exchange(setup, setup.plan.aggregate.wire == WireType::bf16
                                                ? DType::bf16
                                                : context_.accumulator())),
        gram_(context_.make(DType::f64, groups_.count(), adasum::packed_size(leaves_.count()),
                            MemoryKind::workspace)),
        noise_(zeros(context_, groups_.count(), 2)),
        coefficients_(zeros(context_, groups_.count(), leaves_.count())),
        gains_(zeros(context_, 1, groups_.count())),
        summary_(zeros(context_, 1, adasum_summary::columns + leaves_.count())),
        weights_(numbers_on_device(context_, leaves_.weights)),
        shards_(setup.buckets.size()) {
    args_.gram = gram_;
    args_.weights = weights_;
    args_.rule = setup.gain_exponent ? AggregateRule::mean : AggregateRule::adasum;
    args_.noise_leaf = setup.plan.aggregate.leaf == LeafRule::noise;
    args_.noise = noise_;
    args_.gain_exponent = setup.gain_exponent.value_or(1);
    args_.coefficients = coefficients_;
    args_.gains = gains_;
    args_.summary = summary_;
  }

  void set_weights(const std::vector<double>& weights) override {
    leaves_.weights = weights;
    write_numbers(context_, weights, weights_);
  }
  void keep(index_t leaf, std::size_t bucket, ConstTensorView shard) override {
    store_.keep(leaf, bucket, shard);
  }
  void start(std::size_t bucket, TensorView shard) override {
    const PhaseClock::Scope scope(context_.clock, "aggregate");
    shards_[bucket] = shard;
    exchange_->send(bucket, store_.all(bucket, shard));
    started_.push_back(bucket);
  }
  void settle() override { exchange_->settle(); }
  void finish(double unscale) override;

  [[nodiscard]] ConstTensorView gains() const override {
    return args_.rule == AggregateRule::mean ? ConstTensorView(gains_) : ConstTensorView();
  }
  [[nodiscard]] ConstTensorView summary() const override { return summary_; }
  [[nodiscard]] TensorView noise() override { return noise_; }
  [[nodiscard]] std::string describe() const override { return "gram"; }

 private:
  const Context& context_;
  const ParamGroups& groups_;
  Leaves leaves_;
  LeafStore store_;
  std::unique_ptr<LeafExchange> exchange_;
  Tensor gram_, noise_, coefficients_, gains_, summary_, weights_;
  AdasumArgs args_;
  std::vector<TensorView> shards_;
  std::vector<std::size_t> started_;  // in that order
};

void GramAggregation::finish(double unscale) {
  const PhaseClock::Scope scope(context_.clock, "aggregate");
  context_.ops.fill(context_.queue, gram_, 0);
  // As they arrive: what came last is still in the cache.
  for (const std::size_t bucket : started_)
    context_.ops.gram(context_.queue, exchange_->arrive(bucket), exchange_->segments(bucket),
                      gram_);
  started_.clear();
  store_.drop();
  Communicator& world = context_.mesh.world();
  if (world.size() > 1) world.all_reduce(gram_.view().flat(), ReduceOp::sum).wait(context_.queue);
  args_.unscale = unscale;
  context_.ops.adasum(context_.queue, args_);
  combine_leaves(context_, *exchange_, groups_.trained(), shards_, coefficients_);
}

}  // namespace

std::unique_ptr<Aggregation> make_gram_aggregation(const AggregateSetup& setup) {
  return std::make_unique<GramAggregation>(setup);
}

}  // namespace t3d
