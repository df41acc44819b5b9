// ParamBucket: parameters that a group of ranks needs together. Each rank of the group keeps an
// even flat share of the bucket (master weights, gradients, optimizer state), so nothing divides
// and every gather has equal counts up to one lattice unit; the whole block exists only while in
// use.
//
//   linear weight of rank (i,j,k): block W[N_j x K_k], group = axis i       (FSDP on the token
//   axis) vectors over the hidden slice k (norms, positions, biases): group = plane (i,j)
//
// Life in a step: prefetch() -> acquire() -> weights(e) ... release(); gradients go to gradient(e)
// and are summed over the group by start_reduce() / finish_reduce(). Every global element belongs
// to exactly one rank of a cuboid.
#pragma once
#include <string>
#include <vector>

#include "tensor3d/context.hpp"

namespace t3d {

struct ParamInit {
  enum class Kind { normal, ones, zeros };
  Kind kind = Kind::normal;
  double std = 0.02;
};

/// A box of a global tensor, row-major and contiguous at element `offset` of a flat buffer.
struct BlockBox {
  Box box;
  index_t offset = 0;
};

/// One named parameter in a bucket: local matrix [local_rows, local_cols] at `offset` of the block,
/// made of row segments of the global [rows, cols] tensor stacked on each other.
struct ParamEntry {
  std::string name;
  index_t rows = 0, cols = 0;  // global
  bool vector = false;         // [1, n] here, 1-D in files
  bool decay = false;          // weight decay applies
  ParamInit init;
  std::vector<Box> segments;  // local row segments, in local order
  index_t offset = 0;         // in the block; set by add()

  [[nodiscard]] index_t local_rows() const;
  [[nodiscard]] index_t local_cols() const { return segments.empty() ? 0 : segments.front().cols; }
  [[nodiscard]] index_t count() const { return local_rows() * local_cols(); }
};

class ParamBucket {
 public:
  /// `block_dtype`: in which the gathered weights are used (matrices: activation dtype; vectors:
  /// accumulator dtype).
  ParamBucket(const Context& context, Communicator& group, std::string name, DType block_dtype);

  /// Before finish(). Returns the entry's number.
  int add(ParamEntry entry);
  /// Fixes the shares and allocates master weights; the values are not set.
  void finish();
  /// Initial values by each entry's rule, keyed by (seed, name, global index): mesh-independent.
  void initialise(std::uint64_t seed);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<ParamEntry>& entries() const { return entries_; }
  [[nodiscard]] index_t block_count() const { return block_count_; }
  [[nodiscard]] index_t shard_count() const { return shard_.size(group_.rank()); }
  [[nodiscard]] DType block_dtype() const { return block_dtype_; }
  /// The entry's pieces in this rank's share; offsets are within the share.
  [[nodiscard]] std::vector<BlockBox> shard_boxes(const ParamEntry& entry) const;
  /// The entry's flat range [first, last) in this rank's share.
  [[nodiscard]] std::pair<index_t, index_t> shard_range(const ParamEntry& entry) const;

  /// This rank's share: flat [1, shard_count()], accumulator dtype.
  [[nodiscard]] TensorView master() { return master_; }
  [[nodiscard]] TensorView gradient_shard() { return gradient_shard_; }

  void prefetch();    // starts the gather if the block is not there
  void acquire();     // the block is there for what is queued next
  void release();     // the block may go (kept when the context keeps weights)
  void invalidate();  // master weights changed
  /// Whole local matrix of an entry, between acquire and release.
  [[nodiscard]] ConstTensorView weights(int entry) const;

  /// Local gradient matrix, accumulator dtype. `accumulate` says whether it holds something
  /// already; the caller must then add, else overwrite all of it.
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

  /// Bytes that this rank sends for one gather / one reduction (formula side of the ledger).
  [[nodiscard]] index_t gather_bytes() const;
  [[nodiscard]] index_t reduce_bytes() const;
  [[nodiscard]] Communicator& group() const { return group_; }
  /// True when using the block needs no gather and no cast: the share is the block.
  [[nodiscard]] bool block_is_master() const;

 private:
  [[nodiscard]] TensorView entry_view(TensorView flat, const ParamEntry& entry) const;
  void ensure_gradient_block();
  [[nodiscard]] TensorView gradient_block();

  const Context& context_;
  Communicator& group_;
  std::string name_;
  DType block_dtype_;
  std::vector<ParamEntry> entries_;
  index_t block_count_ = 0;
  Partition shard_;
  std::vector<index_t> counts_;

  Tensor master_, block_, gradient_block_, gradient_shard_;
  std::vector<bool> gradient_written_;
  bool block_valid_ = false;
  Work gathering_, reducing_;
};

}  // namespace t3d
