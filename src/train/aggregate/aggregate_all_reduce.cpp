// Aggregation by an ordinary all-reduce of weighted shards: the mean, the sum, and "flat", the
// cheapest form of Adasum. Flat takes the mean's direction; how long a step it deserves follows
// from two numbers per group, the mean of the leaves' squares and the square of their mean, by the
// law that Adasum's tree follows on average (docs/decisions/008-adasum.md). It costs an all-reduce
// and a small message, and cannot leave a leaf out.
#include "train/aggregate/aggregate.hpp"
#include "train/device_numbers.hpp"

namespace t3d {
namespace {

class AllReduceAggregation final : public Aggregation {
 public:
  explicit AllReduceAggregation(const AggregateSetup& setup)
      : context_(setup.context),
        groups_(setup.groups),
        leaves_(setup.leaves),
        replicas_(context_.mesh.along(Axis::d)),
        flat_(setup.plan.aggregate.method == AggregateMethod::adasum),
        sum_(setup.plan.aggregate.method == AggregateMethod::sum),
        gain_exponent_(setup.gain_exponent),
        states_(setup.buckets.size()) {
    T3D_CHECK(leaves_.per_replica == 1, "{} leaves per replica", leaves_.per_replica);
    for (const ParamBucket* bucket : setup.buckets) counts_.push_back(bucket->shard_count());
    if (flat_) {
      weights_ = numbers_on_device(context_, leaves_.weights);
      squares_ = zeros(context_, kSquares, groups_.count());
      gains_ = zeros(context_, 1, groups_.count());
      summary_ = zeros(context_, 1, adasum_summary::columns + leaves_.count());
    }
    set_weights(leaves_.weights);
  }
  void set_weights(const std::vector<double>& weights) override {
    leaves_.weights = weights;
    const double weight = leaves_.weight_of(replicas_.rank());
    factor_ = sum_ ? weight : weight / leaves_.total();
    if (flat_) write_numbers(context_, weights, weights_);
  }

  void keep(index_t, std::size_t, ConstTensorView) override {}
  void start(std::size_t bucket, TensorView shard) override;
  void settle() override {
    for (BucketState& state : states_) state.sum.wait(context_.queue);
  }
  void finish(double unscale) override;
  [[nodiscard]] ConstTensorView gains() const override {
    return flat_ && gain_exponent_ ? ConstTensorView(gains_) : ConstTensorView();
  }
  [[nodiscard]] ConstTensorView summary() const override {
    return flat_ ? ConstTensorView(summary_) : ConstTensorView();
  }
  [[nodiscard]] std::string describe() const override { return flat_ ? "flat" : "all-reduce"; }

 private:
  enum { kOfLeaves, kOfMean, kSquares };  // rows of squares_
  struct BucketState {
    TensorView shard;
    Work sum;
  };
  [[nodiscard]] TensorView squares(index_t row) const {
    return squares_.view().row_range(row, 1).reshaped(groups_.count(), 1);
  }

  const Context& context_;
  const ParamGroups& groups_;
  Leaves leaves_;
  Communicator& replicas_;
  bool flat_, sum_;
  std::optional<double> gain_exponent_;
  double factor_ = 1;
  std::vector<BucketState> states_;
  std::vector<index_t> counts_;
  Tensor squares_, gains_, summary_, weights_;
  bool counting_ = false;  // squares_ holds some of this step
};

void AllReduceAggregation::start(std::size_t bucket, TensorView shard) {
  const PhaseClock::Scope scope(context_.clock, "aggregate");
  states_[bucket].shard = shard;
  if (flat_) {
    if (!counting_) context_.ops.fill(context_.queue, squares_, 0);
    counting_ = true;
    context_.ops.gram(context_.queue, shard, groups_.segments(bucket), squares(kOfLeaves));
  }
  if (factor_ != 1) context_.ops.scale(context_.queue, shard, factor_);
  if (replicas_.size() > 1) states_[bucket].sum = replicas_.all_reduce(shard, ReduceOp::sum);
}

void AllReduceAggregation::finish(double unscale) {
  const PhaseClock::Scope scope(context_.clock, "aggregate");
  settle();
  if (!flat_) return;
  counting_ = false;
  // Every replica's own squares with its weight; those of the mean, which all have, once.
  context_.ops.scale(context_.queue, squares(kOfLeaves), leaves_.weight_of(replicas_.rank()));
  if (replicas_.rank() == 0)
    for (const std::size_t at : groups_.trained())
      context_.ops.gram(context_.queue, states_[at].shard, groups_.segments(at), squares(kOfMean));
  Communicator& world = context_.mesh.world();
  if (world.size() > 1)
    world.all_reduce(squares_.view().flat(), ReduceOp::sum).wait(context_.queue);
  FlatGainArgs args;
  args.leaf_squares = squares_.view().row_range(kOfLeaves, 1);
  args.mean_squares = squares_.view().row_range(kOfMean, 1);
  args.weights = weights_;
  args.unscale = unscale;
  args.gain_exponent = gain_exponent_.value_or(1);
  args.gains = gains_;
  args.summary = summary_;
  context_.ops.flat_gains(context_.queue, args);
  if (gain_exponent_) return;
  for (std::size_t at = 0; at < states_.size(); ++at)
    for (const Segment& segment : groups_.segments(at)) {
      const TensorView part =
          states_[at].shard.col_range(segment.begin, segment.end - segment.begin);
      context_.ops.axpby(context_.queue, {0, {}}, part,
                         {1, gains_.view().col_range(segment.group, 1)}, part);
    }
}

}  // namespace

std::unique_ptr<Aggregation> make_all_reduce_aggregation(const AggregateSetup& setup) {
  return std::make_unique<AllReduceAggregation>(setup);
}

}  // namespace t3d
