// Adasum by Gram matrices. Every leaf travels once: each rank of an axis-d group receives its chunk
// of everybody's share, adds its part of all dot products, and one small sum over all ranks makes
// the n x n Gram matrix of each group of parameters. From there every rank knows all coefficients
// of the tree (core/adasum_tree.hpp), combines its chunk with one rounding, and gathers the others.
//
//   start    exchange, bucket by bucket, while the backward pass goes on
//   finish   gram of all buckets | one all-reduce | coefficients | combine and gather, by bucket
//
// Coefficients wait for the last bucket, although they do not depend on other groups: a leaf with
// a number that is not finite anywhere is left out of the whole step, and nothing is done twice.
// Bytes per rank as in a ring: 2 (d-1)/d of its share (times the leaves of a replica on the way
// out). Memory: the chunks, together as large as the leaves.
#include "comm/cost.hpp"
#include "core/adasum_tree.hpp"
#include "train/aggregate.hpp"
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
        replicas_(context_.mesh.along(Axis::d)),
        wire_(setup.options.wire == "bf16" ? DType::bf16 : context_.accumulator()),
        gram_(context_.make(DType::f64, groups_.count(), adasum::packed_size(leaves_.count()),
                            MemoryKind::workspace)),
        noise_(zeros(context_, groups_.count(), 2)),
        coefficients_(zeros(context_, groups_.count(), leaves_.count())),
        gains_(zeros(context_, 1, groups_.count())),
        summary_(zeros(context_, 1, adasum_summary::columns + leaves_.count())),
        weights_(numbers_on_device(context_, leaves_.weights)) {
    args_.gram = gram_;
    args_.weights = weights_;
    args_.rule = setup.gain_exponent > 0 ? AggregateRule::mean : AggregateRule::adasum;
    args_.noise_leaf = setup.options.leaf == "noise";
    args_.noise = noise_;
    args_.gain_exponent = setup.gain_exponent;
    args_.coefficients = coefficients_;
    args_.gains = gains_;
    args_.summary = summary_;
    for (const ParamBucket* bucket : setup.buckets) {
      Share share;
      share.chunks = Partition::even("chunks", bucket->shard_count(), replicas_.size(), kUnit);
      const index_t own = replicas_.rank();
      share.segments =
          clip(groups_.segments(shares_.size()), share.chunks.begin(own), share.chunks.end(own));
      shares_.push_back(std::move(share));
    }
  }

  void keep(index_t leaf, std::size_t bucket, ConstTensorView shard) override {
    store_.keep(leaf, bucket, shard);
  }
  void start(std::size_t bucket, TensorView shard) override;
  void settle() override {
    for (Share& share : shares_) share.messages.wait(context_.queue);
  }
  void finish(double unscale) override;

  [[nodiscard]] ConstTensorView gains() const override {
    return args_.rule == AggregateRule::mean ? ConstTensorView(gains_) : ConstTensorView();
  }
  [[nodiscard]] ConstTensorView summary() const override { return summary_; }
  [[nodiscard]] TensorView noise() override { return noise_; }
  void predict(Ledger& ledger) const override;
  [[nodiscard]] std::string describe() const override { return "gram"; }

 private:
  /// 256 bytes of fp32: chunks and rows begin where vector loads like it.
  static constexpr index_t kUnit = 64;

  struct Share {
    Partition chunks;               // of the share, by replica
    std::vector<Segment> segments;  // of the own chunk
    TensorView shard;
    Tensor sent;      // in the wire's number format, where it differs
    Tensor received;  // [leaves, own chunk], rows padded to kUnit
    [[nodiscard]] TensorView rows(index_t own) const {
      return received.view().col_range(0, chunks.size(own));
    }
    Tensor whole;     // the result in the wire's number format
    Work messages, gathering;
  };
  [[nodiscard]] std::vector<Exchange> messages_of(const Share& share, ConstTensorView own) const;
  void combine(Share& share);

  const Context& context_;
  const ParamGroups& groups_;
  Leaves leaves_;
  LeafStore store_;
  Communicator& replicas_;
  DType wire_;
  Tensor gram_, noise_, coefficients_, gains_, summary_, weights_;
  AdasumArgs args_;
  std::vector<Share> shares_;
};

std::vector<Exchange> GramAggregation::messages_of(const Share& share, ConstTensorView own) const {
  const index_t here = replicas_.rank();
  std::vector<Exchange> messages;
  for (index_t peer = 0; peer < leaves_.replicas; ++peer)
    for (index_t leaf = 0; leaf < leaves_.per_replica && peer != here; ++leaf) {
      const ConstTensorView send =
          own.row_range(leaf, 1).col_range(share.chunks.begin(peer), share.chunks.size(peer));
      const TensorView receive =
          share.rows(here).row_range(peer * leaves_.per_replica + leaf, 1);
      messages.push_back({static_cast<int>(peer), send, receive});
    }
  return messages;
}

void GramAggregation::start(std::size_t bucket, TensorView shard) {
  const PhaseClock::Scope scope(context_.clock, "aggregate");
  Share& share = shares_[bucket];
  const index_t here = replicas_.rank();
  share.shard = shard;
  ConstTensorView own = store_.all(bucket, shard);
  if (wire_ != own.dtype) {
    share.sent = context_.make(wire_, own.rows, own.cols, MemoryKind::gradients);
    context_.ops.copy(context_.queue, own, share.sent);
    own = share.sent;
  }
  const index_t padded = (share.chunks.size(here) + kUnit - 1) / kUnit * kUnit;
  share.received = context_.make(wire_, leaves_.count(), padded, MemoryKind::gradients);
  context_.ops.copy(
      context_.queue, own.col_range(share.chunks.begin(here), share.chunks.size(here)),
      share.rows(here).row_range(here * leaves_.per_replica, leaves_.per_replica));
  if (replicas_.size() > 1) share.messages = replicas_.exchange(messages_of(share, own));
}

void GramAggregation::combine(Share& share) {
  const index_t here = replicas_.rank();
  TensorView whole = share.shard;
  if (wire_ != whole.dtype && replicas_.size() > 1) {
    share.whole = context_.make(wire_, 1, whole.cols, MemoryKind::gradients);
    whole = share.whole;
  }
  const TensorView own = whole.col_range(share.chunks.begin(here), share.chunks.size(here));
  context_.ops.combine(context_.queue, share.rows(here), share.segments, coefficients_, own);
  share.received.reset();
  if (replicas_.size() > 1)
    share.gathering = replicas_.all_gather(own, whole, share.chunks.sizes());
}

void GramAggregation::finish(double unscale) {
  const PhaseClock::Scope scope(context_.clock, "aggregate");
  context_.ops.fill(context_.queue, gram_, 0);
  for (Share& share : shares_) {
    share.messages.wait(context_.queue);
    share.sent.reset();
    context_.ops.gram(context_.queue, share.rows(replicas_.rank()), share.segments, gram_);
  }
  store_.drop();
  Communicator& world = context_.mesh.world();
  if (world.size() > 1) world.all_reduce(gram_.view().flat(), ReduceOp::sum).wait(context_.queue);
  args_.unscale = unscale;
  context_.ops.adasum(context_.queue, args_);
  for (Share& share : shares_) combine(share);
  for (Share& share : shares_) {
    share.gathering.wait(context_.queue);
    if (!share.whole.allocated()) continue;
    context_.ops.copy(context_.queue, share.whole, share.shard);
    share.whole.reset();
  }
}

void GramAggregation::predict(Ledger& ledger) const {
  const index_t here = replicas_.rank();
  for (const Share& share : shares_) {
    const index_t others = share.chunks.length() - share.chunks.size(here);
    ledger.count(Verb::exchange, "d", others * leaves_.per_replica * size_of(wire_));
    ledger.count(Verb::all_gather, "d",
                 all_gather_bytes(share.chunks.sizes(), static_cast<int>(here), wire_));
  }
  const Communicator& world = context_.mesh.world();
  ledger.count(
      Verb::all_reduce, "world",
      all_reduce_bytes(gram_.rows() * gram_.cols(), world.size(), world.rank(), DType::f64));
}

}  // namespace

std::unique_ptr<Aggregation> make_gram_aggregation(const AggregateSetup& setup) {
  return std::make_unique<GramAggregation>(setup);
}

}  // namespace t3d
