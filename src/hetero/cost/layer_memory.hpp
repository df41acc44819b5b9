// Memory of buckets and layers through a training pass: the same pieces in the same order as
// tensor3d/param_bucket.cpp, tensor3d/linear3d.cpp and src/layers take and give back. Internal to
// `hetero`.
#pragma once
#include <functional>

#include "hetero/cost/layer_traffic.hpp"
#include "hetero/cost/memory_walk.hpp"

namespace t3d {

using Held = MemoryWalk::Held;

/// A parameter bucket, or `times` of them in as many blocks alike.
struct BucketMemory {
  BucketSize size;
  index_t times = 1;
  std::size_t number = 0;  // of the (first) bucket in the model's order
  bool frozen = false;
  Held master, block, gradient, shard;
};

/// A bucket's gradient is complete.
using BucketDone = std::function<void(BucketMemory&)>;

/// The buckets of a model by kind of layer. Blocks between the first two and the last two are alike
/// in everything but their place: one stands for them.
class ModelMemory {
 public:
  ModelMemory(MemoryWalk& walk, const RankView& rank);

  [[nodiscard]] std::size_t blocks() const { return blocks_.size(); }
  [[nodiscard]] std::array<BucketMemory, 4>& block(std::size_t at) { return blocks_[at]; }
  [[nodiscard]] index_t times(std::size_t block) const { return blocks_[block].front().times; }
  [[nodiscard]] BucketMemory& table() { return table_; }
  [[nodiscard]] BucketMemory& head_table() { return tied_ ? table_ : head_; }
  [[nodiscard]] BucketMemory& hidden_vectors() { return hidden_vectors_; }
  [[nodiscard]] BucketMemory& inner_vectors() { return inner_vectors_; }
  /// Only with qk_norm.
  [[nodiscard]] BucketMemory& head_vectors() { return head_vectors_; }
  /// Of inputs and outputs over k, and over j; only with [lora].
  [[nodiscard]] BucketMemory& hidden_adapters() { return hidden_adapters_; }
  [[nodiscard]] BucketMemory& inner_adapters() { return inner_adapters_; }
  /// Vectors and adapters: gathered for a whole pass.
  [[nodiscard]] const std::vector<BucketMemory*>& shared_vectors() const { return shared_vectors_; }
  [[nodiscard]] bool needs_input(std::size_t block, std::size_t kind) const {
    return needs_input_[block][kind];
  }
  [[nodiscard]] bool normed_heads() const { return normed_heads_; }
  [[nodiscard]] bool tied() const { return tied_; }
  /// Buckets before those of the blocks.
  [[nodiscard]] std::size_t shared() const {
    return 3 + (normed_heads_ ? 1U : 0U) + (adapted_ ? 2U : 0U) + (tied_ ? 0U : 1U);
  }
  /// In the model's order.
  [[nodiscard]] const std::vector<BucketMemory*>& all() const { return all_; }

  void prefetch(BucketMemory& bucket);
  void release(BucketMemory& bucket);
  void ensure_gradient(BucketMemory& bucket);
  void start_reduce(BucketMemory& bucket);
  void finish_reduce(BucketMemory& bucket);
  /// After a block's backward pass. In the leaf's last one the sums of its gradients start; they
  /// have the backward pass of the block before for their way, then `done` is called, where there
  /// is one.
  void block_done(std::size_t block, bool last, const BucketDone& done);
  /// What several layers share.
  void reduce_shared();
  void drop_gradients();

 private:
  [[nodiscard]] bool block_is_master(const BucketMemory& bucket) const;
  [[nodiscard]] index_t block_bytes(const BucketMemory& bucket) const;
  void add(BucketMemory& bucket);

  MemoryWalk& walk_;
  const RankView& rank_;
  bool tied_, normed_heads_, adapted_;
  BucketMemory table_, hidden_vectors_, inner_vectors_, head_vectors_, hidden_adapters_,
      inner_adapters_, head_;
  std::vector<BucketMemory*> shared_vectors_;
  std::vector<std::array<bool, 4>> needs_input_;  // by walked block
  std::vector<std::array<BucketMemory, 4>> blocks_;
  std::vector<BucketMemory*> all_;
};

/// Forward and backward pass of a micro-batch of `sequences`; the leaf's last one sums the
/// gradients. `done` is called in it where the leaf is the step's last.
void walk_training(MemoryWalk& walk, const RankView& rank, ModelMemory& model, index_t sequences,
                   bool last, const BucketDone& done);
/// The same for a leaf without samples.
void walk_nothing(ModelMemory& model, const BucketDone& done);

}  // namespace t3d
