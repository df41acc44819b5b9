// How the leaves of all replicas meet, and how what is made of them comes back. Every rank combines
// some columns of each bucket, its own ones; it gets them from one holder in every replica.
//
//   send(bucket) ... as soon as one is complete    settle()    then for each bucket
//   arrive -> [leaves, own columns]    result -> where what is made of them goes    spread collect
//
// Where all replicas cut the model alike, its own columns are a chunk of a rank's shard, and the
// group is axis d (leaf_exchange_chunks.cpp). Where they do not, they are pieces of the common
// refinement of all cuts, and messages go through the world (leaf_exchange_refined.cpp).
#pragma once
#include <memory>

#include "hetero/cost/update_traffic.hpp"
#include "train/aggregate/aggregate.hpp"

namespace t3d {

class LeafExchange {
 public:
  virtual ~LeafExchange() = default;
  /// The own columns of a bucket, cut by group.
  [[nodiscard]] virtual const std::vector<Segment>& segments(std::size_t bucket) const = 0;
  /// own [leaves of a replica, shard]; must stay until arrive().
  virtual void send(std::size_t bucket, ConstTensorView own) = 0;
  /// What is queued from now on comes after the messages sent so far.
  virtual void settle() = 0;
  /// [leaves, own columns] in the wire's number format; there until spread().
  [[nodiscard]] virtual ConstTensorView arrive(std::size_t bucket) = 0;
  /// Where the result of the own columns is to be written: [1, own columns].
  [[nodiscard]] virtual TensorView result(std::size_t bucket, TensorView shard) = 0;
  /// The result is written: off to those who hold its elements.
  virtual void spread(std::size_t bucket) = 0;
  /// `shard`, the same as in result(), holds the results of all.
  virtual void collect(std::size_t bucket, TensorView shard) = 0;
};

/// Combines the own columns of these buckets with coefficients [groups, leaves], after settle():
/// afterwards their shards hold the results.
void combine_leaves(const Context& context, LeafExchange& exchange,
                    const std::vector<std::size_t>& buckets, const std::vector<TensorView>& shards,
                    ConstTensorView coefficients);

/// [rows, cols] with padded rows.
[[nodiscard]] inline Tensor make_rows(const Context& context, DType dtype, index_t rows,
                                      index_t cols) {
  return context.make(dtype, rows, (cols + kLeafRowUnit - 1) / kLeafRowUnit * kLeafRowUnit,
                      MemoryKind::gradients);
}

/// `wire`: the number format of messages. Collective over the world.
[[nodiscard]] std::unique_ptr<LeafExchange> make_leaf_exchange(const AggregateSetup& setup,
                                                               DType wire);

/// Its two forms.
[[nodiscard]] std::unique_ptr<LeafExchange> make_chunk_exchange(const AggregateSetup& setup,
                                                                DType wire);
[[nodiscard]] std::unique_ptr<LeafExchange> make_refined_exchange(const AggregateSetup& setup,
                                                                  DType wire);

}  // namespace t3d
