// ParamBucket: the parameters of one BucketTable on this rank. Each rank of the group keeps its
// shard (master weights, gradients, optimizer state); the gathered bucket exists only while in use.
//
// Life in a step: prefetch() -> acquire() -> weights(e) ... release(); gradients go to gradient(e)
// and are summed over the group by start_reduce() / finish_reduce(). Every global element belongs
// to exactly one rank of a cuboid.
#pragma once
#include <string>
#include <vector>

#include "tensor3d/context.hpp"
#include "tensor3d/parameters.hpp"

namespace t3d {

class ParamBucket {
 public:
  /// Has no master weights yet: allocate() or adopt() gives them.
  ParamBucket(const Context& context, Communicator& group, BucketTable table);

  /// Master weights whose values are not set.
  void allocate();
  /// Master weights with values: [1, shard_count()].
  void adopt(Tensor master);
  /// The master weights leave: state on its way to another formation.
  [[nodiscard]] Tensor take_master();
  /// Initial values by each entry's rule, keyed by (seed, name, global index): mesh-independent.
  void initialise(std::uint64_t seed);

  [[nodiscard]] const BucketTable& table() const { return table_; }
  [[nodiscard]] const std::string& name() const { return table_.name; }
  [[nodiscard]] const std::vector<ParamEntry>& entries() const { return table_.entries; }
  /// Number of an entry; a bug where there is none.
  [[nodiscard]] int entry(const std::string& name) const;
  [[nodiscard]] bool frozen() const { return table_.frozen; }
  [[nodiscard]] index_t shard_count() const { return table_.shard_count(); }
  [[nodiscard]] std::vector<PlacedBox> shard_boxes(const ParamEntry& entry) const {
    return table_.shard_boxes(entry);
  }
  [[nodiscard]] std::pair<index_t, index_t> shard_range(const ParamEntry& entry) const {
    return table_.shard_range(entry);
  }

  /// This rank's shard: flat [1, shard_count()], accumulator dtype.
  [[nodiscard]] TensorView master() { return master_; }
  /// Of a frozen bucket: no data.
  [[nodiscard]] TensorView gradient_shard() { return gradient_shard_; }

  void prefetch();    // starts the gather if the block is not there
  void acquire();     // the block is there for what is queued next
  void release();     // the block may go (kept when the context keeps weights)
  void invalidate();  // master weights changed
  /// Whole local matrix of an entry, between acquire and release.
  [[nodiscard]] ConstTensorView weights(int entry) const;

  /// Local gradient matrix, accumulator dtype; not of a frozen bucket. `accumulate` says whether it
  /// holds something already; the caller must then add, else overwrite all of it.
  struct GradientTarget {
    TensorView view;
    bool accumulate = false;
  };
  [[nodiscard]] GradientTarget gradient(int entry);
  /// The same, zeroed if it held nothing (for scatter-adds).
  [[nodiscard]] TensorView gradient_to_add(int entry);

  void start_reduce();    // all local gradients of the step are in
  void finish_reduce();   // gradient_shard() is the sum over the group
  void drop_gradients();  // after the optimizer

  [[nodiscard]] Communicator& group() const { return group_; }
  /// True when using the bucket needs no gather and no cast: the shard is the bucket.
  [[nodiscard]] bool block_is_master() const;

 private:
  [[nodiscard]] TensorView entry_view(TensorView flat, const ParamEntry& entry) const;
  void ensure_gradient_block();
  [[nodiscard]] TensorView gradient_block();

  const Context& context_;
  Communicator& group_;
  BucketTable table_;
  DType block_dtype_;
  std::vector<index_t> counts_;  // elements of the shards

  Tensor master_, block_, gradient_block_, gradient_shard_;
  std::vector<bool> gradient_written_;
  bool block_valid_ = false;
  Work gathering_, reducing_;
};

}  // namespace t3d
