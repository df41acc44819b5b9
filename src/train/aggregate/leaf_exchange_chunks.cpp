// Equal cuts: the ranks of an axis-d group hold the same shard of their replicas. Each combines one
// chunk of it, received in place, and gathers the others. Bytes per rank as in a ring: 2 (d-1)/d of
// its shard (times the leaves of a replica on the way out).
#include "train/aggregate/leaf_exchange.hpp"

namespace t3d {
namespace {

class ChunkExchange final : public LeafExchange {
 public:
  ChunkExchange(const AggregateSetup& setup, DType wire)
      : context_(setup.context),
        leaves_(setup.leaves),
        replicas_(context_.mesh.along(Axis::d)),
        wire_(wire) {
    const index_t here = replicas_.rank();
    for (const ParamBucket* bucket : setup.buckets) {
      BucketState state;
      state.chunks =
          Partition::even("chunks", bucket->shard_count(), replicas_.size(), kLeafRowUnit);
      state.segments = clip(setup.groups.segments(states_.size()), state.chunks.begin(here),
                            state.chunks.end(here));
      states_.push_back(std::move(state));
    }
  }

  [[nodiscard]] const std::vector<Segment>& segments(std::size_t bucket) const override {
    return states_[bucket].segments;
  }
  void send(std::size_t bucket, ConstTensorView own) override;
  void settle() override {
    for (BucketState& state : states_) state.messages.wait(context_.queue);
  }
  [[nodiscard]] ConstTensorView arrive(std::size_t bucket) override {
    BucketState& state = states_[bucket];
    state.messages.wait(context_.queue);
    state.sent.reset();
    return rows(state);
  }
  [[nodiscard]] TensorView result(std::size_t bucket, TensorView shard) override;
  void spread(std::size_t bucket) override;
  void collect(std::size_t bucket, TensorView shard) override;

 private:
  struct BucketState {
    Partition chunks;               // of the shard, by replica
    std::vector<Segment> segments;  // of the own chunk
    Tensor sent;                    // in the wire's number format, where it differs
    Tensor received;                // [leaves, own chunk], rows padded
    Tensor whole;                   // the result in the wire's number format, where it differs
    TensorView target;              // the result of all chunks
    Work messages, gathering;
  };
  [[nodiscard]] std::vector<Exchange> messages_of(const BucketState& state,
                                                  ConstTensorView own) const;
  [[nodiscard]] TensorView rows(const BucketState& state) const {
    return state.received.view().col_range(0, state.chunks.size(replicas_.rank()));
  }
  [[nodiscard]] TensorView own_chunk(const BucketState& state, TensorView whole) const {
    return whole.col_range(state.chunks.begin(replicas_.rank()),
                           state.chunks.size(replicas_.rank()));
  }

  const Context& context_;
  Leaves leaves_;
  Communicator& replicas_;
  DType wire_;
  std::vector<BucketState> states_;
};

std::vector<Exchange> ChunkExchange::messages_of(const BucketState& state,
                                                 ConstTensorView own) const {
  std::vector<Exchange> messages;
  for (index_t peer = 0; peer < leaves_.replicas; ++peer)
    for (index_t leaf = 0; leaf < leaves_.per_replica && peer != replicas_.rank(); ++leaf) {
      const ConstTensorView send =
          own.row_range(leaf, 1).col_range(state.chunks.begin(peer), state.chunks.size(peer));
      const TensorView receive = rows(state).row_range(peer * leaves_.per_replica + leaf, 1);
      messages.push_back({static_cast<int>(peer), send, receive});
    }
  return messages;
}

void ChunkExchange::send(std::size_t bucket, ConstTensorView own) {
  BucketState& state = states_[bucket];
  const index_t here = replicas_.rank();
  if (wire_ != own.dtype) {
    state.sent = context_.make(wire_, own.rows, own.cols, MemoryKind::gradients);
    context_.ops.copy(context_.queue, own, state.sent);
    own = state.sent;
  }
  state.received = make_rows(context_, wire_, leaves_.count(), state.chunks.size(here));
  context_.ops.copy(context_.queue,
                    own.col_range(state.chunks.begin(here), state.chunks.size(here)),
                    rows(state).row_range(here * leaves_.per_replica, leaves_.per_replica));
  if (replicas_.size() > 1) state.messages = replicas_.exchange(messages_of(state, own));
}

TensorView ChunkExchange::result(std::size_t bucket, TensorView shard) {
  BucketState& state = states_[bucket];
  state.target = shard;
  if (wire_ != shard.dtype && replicas_.size() > 1) {
    state.whole = context_.make(wire_, 1, shard.cols, MemoryKind::gradients);
    state.target = state.whole;
  }
  return own_chunk(state, state.target);
}

void ChunkExchange::spread(std::size_t bucket) {
  BucketState& state = states_[bucket];
  state.received.reset();
  if (replicas_.size() > 1)
    state.gathering =
        replicas_.all_gather(own_chunk(state, state.target), state.target, state.chunks.sizes());
}

void ChunkExchange::collect(std::size_t bucket, TensorView shard) {
  BucketState& state = states_[bucket];
  state.gathering.wait(context_.queue);
  if (!state.whole.allocated()) return;
  context_.ops.copy(context_.queue, state.whole, shard);
  state.whole.reset();
}

}  // namespace

std::unique_ptr<LeafExchange> make_chunk_exchange(const AggregateSetup& setup, DType wire) {
  return std::make_unique<ChunkExchange>(setup, wire);
}

}  // namespace t3d
