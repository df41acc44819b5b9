// Adasum by recursive vector halving: pairs of replicas swap halves of what they hold, combine, and
// go on with partners twice as far away (rvh_plan.hpp). Messages go to near neighbours first and
// shrink by half each time, which suits shared memory and tapered networks; every level needs a
// sum of its dot products, and every level rounds.
//
// The dot products of all buckets of a level travel together, with the weights of the two sides:
// a side with a number that is not finite anywhere has weight 0 from then on. Leaves are linear
// (the noise of single leaves is not seen), gains and the noise scale are not known.
#include "comm/cost.hpp"
#include "core/adasum_tree.hpp"
#include "train/aggregate.hpp"
#include "train/device_numbers.hpp"
#include "train/rvh_plan.hpp"

namespace t3d {
namespace {

constexpr index_t kPair = 2;

class RvhAggregation final : public Aggregation {
 public:
  explicit RvhAggregation(const AggregateSetup& setup)
      : context_(setup.context),
        groups_(setup.groups),
        leaves_(setup.leaves),
        store_(context_, leaves_.per_replica),
        replicas_(context_.mesh.along(Axis::d)),
        local_(setup.context, setup.groups.count(), leaves_.per_replica),
        pair_(setup.context, setup.groups.count(), kPair) {
    const index_t here = replicas_.rank();
    const auto first = leaves_.weights.begin() + here * leaves_.per_replica;
    const Tensor weights = numbers_on_device(context_, {first, first + leaves_.per_replica});
    context_.ops.copy(context_.queue, weights, local_.weights());
    own_weight_ = numbers_on_device(context_, {leaves_.weight_of(here)});
    for (const ParamBucket* bucket : setup.buckets)
      shares_.push_back({rvh_plan(leaves_.replicas, here, bucket->shard_count()),
                         groups_.segments(shares_.size()),
                         bucket->shard_count(),
                         {},
                         {},
                         {}});
    for (const RvhMerge& level : rvh_plan(leaves_.replicas, here, 0))
      levels_.push_back(make(level));
  }

  void keep(index_t leaf, std::size_t bucket, ConstTensorView shard) override {
    store_.keep(leaf, bucket, shard);
  }
  void start(std::size_t bucket, TensorView shard) override { shares_[bucket].shard = shard; }
  void settle() override {}
  void finish(double unscale) override;
  [[nodiscard]] ConstTensorView summary() const override { return {}; }
  void predict(Ledger& ledger) const override;
  [[nodiscard]] std::string describe() const override { return "rvh"; }

 private:
  /// Gram matrices of `n` vectors per group, their weights behind them (one buffer, one message),
  /// and what is made of both.
  class Stage {
   public:
    Stage(const Context& context, index_t groups, index_t n)
        : groups_(groups),
          n_(n),
          sums_(zeros(context, 1, groups * adasum::packed_size(n) + n)),
          coefficients_(zeros(context, groups, n)),
          gains_(zeros(context, 1, groups)),
          noise_(zeros(context, groups, 2)),
          summary_(zeros(context, 1, adasum_summary::columns + n)) {}
    [[nodiscard]] TensorView sums() const { return sums_; }
    [[nodiscard]] TensorView gram() const {
      const index_t size = adasum::packed_size(n_);
      return sums_.view().col_range(0, groups_ * size).flat().reshaped(groups_, size);
    }
    [[nodiscard]] TensorView weights() const {
      return sums_.view().col_range(groups_ * adasum::packed_size(n_), n_);
    }
    [[nodiscard]] TensorView coefficients() const { return coefficients_; }
    /// The live weight of what came out.
    [[nodiscard]] TensorView weight() const {
      return summary_.view().col_range(adasum_summary::weights, 1);
    }
    void run(const Context& context, bool plain, double unscale) {
      AdasumArgs args;
      args.gram = gram();
      args.weights = weights();
      args.unscale = unscale;
      args.noise_leaf = false;
      args.plain_leaf = plain;
      args.noise = noise_;
      args.coefficients = coefficients_;
      args.gains = gains_;
      args.summary = summary_;
      context.ops.adasum(context.queue, args);
    }

   private:
    index_t groups_, n_;
    Tensor sums_, coefficients_, gains_, noise_, summary_;
  };
  struct Level {
    RvhMerge merge;                       // without elements
    std::unique_ptr<Communicator> group;  // all ranks of its replicas
    bool first_of_side = false;           // says the side's weight
    [[nodiscard]] bool takes_part() const { return merge.first < merge.last; }
  };
  struct Share {
    std::vector<RvhMerge> plan;
    std::vector<Segment> segments;
    index_t count = 0;
    TensorView shard;
    Tensor pair;  // [2, kept]: lower and upper vector of the merge at work
    Work messages;
  };

  Level make(const RvhMerge& merge);
  void merge_leaves(double unscale);
  void merge(std::size_t at, double unscale);
  void start_messages(Share& share, const RvhMerge& merge);
  void go_back(std::size_t at);

  const Context& context_;
  const ParamGroups& groups_;
  Leaves leaves_;
  LeafStore store_;
  Communicator& replicas_;
  Stage local_, pair_;
  Tensor own_weight_;
  std::vector<Share> shares_;
  std::vector<Level> levels_;
  bool merged_ = false;  // pair_ holds this replica's weight
};

RvhAggregation::Level RvhAggregation::make(const RvhMerge& merge) {
  const MeshShape& shape = context_.mesh.shape();
  Communicator& world = context_.mesh.world();
  Level level{merge, nullptr, false};
  std::vector<int> members;
  for (int rank = 0; rank < world.size(); ++rank) {
    const index_t replica = shape.coord_of(rank).d;
    if (merge.first <= replica && replica < merge.last) members.push_back(rank);
  }
  if (members.empty()) members.push_back(world.rank());
  level.group = world.subgroup(members, "merge");
  const Coord& own = context_.mesh.coord();
  const bool corner = own.i == 0 && own.j == 0 && own.k == 0;
  level.first_of_side = corner && (own.d == merge.first || own.d == merge.middle);
  return level;
}

// The leaves of this replica become one, in its shards.
void RvhAggregation::merge_leaves(double unscale) {
  const bool alone = leaves_.per_replica == 1;
  if (alone) {
    const bool as_it_is = leaves_.weight_of(replicas_.rank()) == 1;
    for (Share& share : shares_)
      if (!as_it_is)
        context_.ops.axpby(context_.queue, {0, {}}, share.shard, {1, own_weight_}, share.shard);
    context_.ops.copy(context_.queue, own_weight_, local_.weight());
    return;
  }
  context_.ops.fill(context_.queue, local_.gram().flat(), 0);
  for (std::size_t at = 0; at < shares_.size(); ++at)
    context_.ops.gram(context_.queue, store_.all(at, shares_[at].shard), shares_[at].segments,
                      local_.gram());
  Communicator& cuboid = context_.mesh.cuboid();
  if (cuboid.size() > 1)
    cuboid.all_reduce(local_.gram().flat(), ReduceOp::sum).wait(context_.queue);
  local_.run(context_, false, unscale);
  for (std::size_t at = 0; at < shares_.size(); ++at)
    context_.ops.combine(context_.queue, store_.kept(at), shares_[at].segments,
                         local_.coefficients(), shares_[at].shard);
  store_.drop();
}

void RvhAggregation::start_messages(Share& share, const RvhMerge& merge) {
  share.pair = context_.make(share.shard.dtype, kPair, merge.kept.size(), MemoryKind::gradients);
  const index_t own = merge.lower ? 0 : 1;
  std::vector<Exchange> messages;
  for (const RvhPiece& piece : merge.sends)
    messages.push_back(
        {piece.replica, share.shard.col_range(piece.range.begin, piece.range.size()), {}});
  for (const RvhPiece& piece : merge.receives)
    messages.push_back({piece.replica,
                        {},
                        share.pair.view()
                            .row_range(1 - own, 1)
                            .col_range(piece.range.begin - merge.kept.begin, piece.range.size())});
  share.messages = replicas_.exchange(std::move(messages));
  if (merge.kept.size() > 0)
    context_.ops.copy(context_.queue, share.shard.col_range(merge.kept.begin, merge.kept.size()),
                      share.pair.view().row_range(own, 1));
}

void RvhAggregation::merge(std::size_t at, double unscale) {
  Level& level = levels_[at];
  // Every rank of a group issues every exchange: those without a part send nothing.
  for (Share& share : shares_) start_messages(share, share.plan[at]);
  if (!level.takes_part()) {
    for (Share& share : shares_) share.messages.wait(context_.queue);
    return;
  }
  context_.ops.fill(context_.queue, pair_.sums(), 0);
  if (level.first_of_side) {
    const index_t side = level.merge.lower ? 0 : 1;
    const TensorView from = merged_ ? pair_.weight() : local_.weight();
    context_.ops.copy(context_.queue, from, pair_.weights().col_range(side, 1));
  }
  for (Share& share : shares_) {
    const RvhMerge& merge = share.plan[at];
    share.messages.wait(context_.queue);
    context_.ops.gram(context_.queue, share.pair,
                      clip(share.segments, merge.kept.begin, merge.kept.end), pair_.gram());
  }
  level.group->all_reduce(pair_.sums(), ReduceOp::sum).wait(context_.queue);
  pair_.run(context_, true, unscale);
  merged_ = true;
  for (Share& share : shares_) {
    const Range& kept = share.plan[at].kept;
    context_.ops.combine(context_.queue, share.pair, clip(share.segments, kept.begin, kept.end),
                         pair_.coefficients(), share.shard.col_range(kept.begin, kept.size()));
    share.pair.reset();
  }
}

// What was received is sent, what was sent is received.
void RvhAggregation::go_back(std::size_t at) {
  for (Share& share : shares_) {
    std::vector<Exchange> messages;
    const auto place = [&](const Range& range) {
      return share.shard.col_range(range.begin, range.size());
    };
    for (const RvhPiece& piece : share.plan[at].receives)
      messages.push_back({piece.replica, place(piece.range), {}});
    for (const RvhPiece& piece : share.plan[at].sends)
      messages.push_back({piece.replica, {}, place(piece.range)});
    share.messages = replicas_.exchange(std::move(messages));
  }
  for (Share& share : shares_) share.messages.wait(context_.queue);
}

void RvhAggregation::finish(double unscale) {
  const PhaseClock::Scope scope(context_.clock, "aggregate");
  merge_leaves(unscale);
  merged_ = false;
  for (std::size_t at = 0; at < levels_.size(); ++at) merge(at, unscale);
  for (std::size_t at = levels_.size(); at-- > 0;) go_back(at);
}

void RvhAggregation::predict(Ledger& ledger) const {
  index_t bytes = 0;
  for (const Share& share : shares_)
    for (const RvhMerge& merge : share.plan) {
      for (const RvhPiece& piece : merge.sends) bytes += piece.range.size();
      for (const RvhPiece& piece : merge.receives) bytes += piece.range.size();
    }
  ledger.count(Verb::exchange, "d", bytes * size_of(context_.accumulator()));
  for (const Level& level : levels_)
    if (level.takes_part())
      ledger.count(Verb::all_reduce, "merge",
                   all_reduce_bytes(pair_.sums().count(), level.group->size(), level.group->rank(),
                                    DType::f64));
  if (leaves_.per_replica == 1) return;
  const Communicator& cuboid = context_.mesh.cuboid();
  ledger.count(Verb::all_reduce, "cuboid",
               all_reduce_bytes(local_.gram().count(), cuboid.size(), cuboid.rank(), DType::f64));
}

}  // namespace

std::unique_ptr<Aggregation> make_rvh_aggregation(const AggregateSetup& setup) {
  return std::make_unique<RvhAggregation>(setup);
}

}  // namespace t3d
