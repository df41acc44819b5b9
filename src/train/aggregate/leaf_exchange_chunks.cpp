// Equal cuts: the ranks of an axis-d group hold the same share of their replicas. Each combines one
// chunk of it, received in place, and gathers the others. Bytes per rank as in a ring: 2 (d-1)/d of
// its share (times the leaves of a replica on the way out).
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
      Share share;
      share.chunks = Partition::even("chunks", bucket->shard_count(), replicas_.size(), kLeafRowUnit);
      share.segments = clip(setup.groups.segments(shares_.size()), share.chunks.begin(here),
                            share.chunks.end(here));
      shares_.push_back(std::move(share));
    }
  }

  [[nodiscard]] const std::vector<Segment>& segments(std::size_t bucket) const override {
    return shares_[bucket].segments;
  }
  void send(std::size_t bucket, ConstTensorView own) override;
  void settle() override {
    for (Share& share : shares_) share.messages.wait(context_.queue);
  }
  [[nodiscard]] ConstTensorView arrive(std::size_t bucket) override {
    Share& share = shares_[bucket];
    share.messages.wait(context_.queue);
    share.sent.reset();
    return rows(share);
  }
  [[nodiscard]] TensorView result(std::size_t bucket, TensorView shard) override;
  void spread(std::size_t bucket) override;
  void collect(std::size_t bucket, TensorView shard) override;

 private:
  struct Share {
    Partition chunks;               // of the share, by replica
    std::vector<Segment> segments;  // of the own chunk
    Tensor sent;                    // in the wire's number format, where it differs
    Tensor received;                // [leaves, own chunk], rows padded
    Tensor whole;                   // the result in the wire's number format, where it differs
    TensorView target;              // the result of all chunks
    Work messages, gathering;
  };
  [[nodiscard]] std::vector<Exchange> messages_of(const Share& share, ConstTensorView own) const;
  [[nodiscard]] TensorView rows(const Share& share) const {
    return share.received.view().col_range(0, share.chunks.size(replicas_.rank()));
  }
  [[nodiscard]] TensorView own_chunk(const Share& share, TensorView whole) const {
    return whole.col_range(share.chunks.begin(replicas_.rank()),
                           share.chunks.size(replicas_.rank()));
  }

  const Context& context_;
  Leaves leaves_;
  Communicator& replicas_;
  DType wire_;
  std::vector<Share> shares_;
};

std::vector<Exchange> ChunkExchange::messages_of(const Share& share, ConstTensorView own) const {
  std::vector<Exchange> messages;
  for (index_t peer = 0; peer < leaves_.replicas; ++peer)
    for (index_t leaf = 0; leaf < leaves_.per_replica && peer != replicas_.rank(); ++leaf) {
      const ConstTensorView send =
          own.row_range(leaf, 1).col_range(share.chunks.begin(peer), share.chunks.size(peer));
      const TensorView receive = rows(share).row_range(peer * leaves_.per_replica + leaf, 1);
      messages.push_back({static_cast<int>(peer), send, receive});
    }
  return messages;
}

void ChunkExchange::send(std::size_t bucket, ConstTensorView own) {
  Share& share = shares_[bucket];
  const index_t here = replicas_.rank();
  if (wire_ != own.dtype) {
    share.sent = context_.make(wire_, own.rows, own.cols, MemoryKind::gradients);
    context_.ops.copy(context_.queue, own, share.sent);
    own = share.sent;
  }
  share.received = make_rows(context_, wire_, leaves_.count(), share.chunks.size(here));
  context_.ops.copy(context_.queue,
                    own.col_range(share.chunks.begin(here), share.chunks.size(here)),
                    rows(share).row_range(here * leaves_.per_replica, leaves_.per_replica));
  if (replicas_.size() > 1) share.messages = replicas_.exchange(messages_of(share, own));
}

TensorView ChunkExchange::result(std::size_t bucket, TensorView shard) {
  Share& share = shares_[bucket];
  share.target = shard;
  if (wire_ != shard.dtype && replicas_.size() > 1) {
    share.whole = context_.make(wire_, 1, shard.cols, MemoryKind::gradients);
    share.target = share.whole;
  }
  return own_chunk(share, share.target);
}

void ChunkExchange::spread(std::size_t bucket) {
  Share& share = shares_[bucket];
  share.received.reset();
  if (replicas_.size() > 1)
    share.gathering =
        replicas_.all_gather(own_chunk(share, share.target), share.target, share.chunks.sizes());
}

void ChunkExchange::collect(std::size_t bucket, TensorView shard) {
  Share& share = shares_[bucket];
  share.gathering.wait(context_.queue);
  if (!share.whole.allocated()) return;
  context_.ops.copy(context_.queue, share.whole, shard);
  share.whole.reset();
}

}  // namespace

std::unique_ptr<LeafExchange> make_chunk_exchange(const AggregateSetup& setup, DType wire) {
  return std::make_unique<ChunkExchange>(setup, wire);
}

}  // namespace t3d
