// Transformer: the whole model on one rank of a cuboid, with explicit forward and backward passes.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "layers/block.hpp"
#include "layers/embedding.hpp"
#include "layers/head_loss.hpp"

namespace t3d {

/// One micro-batch as this rank sees it: the sequences of its slab (cut over i).
struct MicroBatch {
  index_t sequences = 0;                  // of the whole micro-batch
  index_t first_position = 0;             // sample-ledger position of its first sequence
  std::span<const std::int32_t> ids;      // [slab sequences * length], host
  std::span<const std::int32_t> targets;  // same; negative = ignored
};

/// Who wants to know of gradients before all are there: a step's last micro-batch tells it.
struct GradientSink {
  /// buckets()[number]'s gradient share is complete.
  std::function<void(std::size_t number)> complete;
  /// Messages that `complete` started must be waited for now (on the queue): a recording ends.
  std::function<void()> settle;
};

class Transformer {
 public:
  /// `context` must outlive the model. `recompute`: keep only block inputs for backward. The
  /// weights come by initialise() or by ParamBucket::adopt().
  Transformer(const Context& context, const ModelShape& shape, bool recompute);

  /// Other sizes of micro-batches and other cuts of them; parameters are cut as before.
  void set_batch(const ReplicaPlan& cut) { shape_.cut = cut; }
  void allocate();                      // weights without values
  void initialise(std::uint64_t seed);  // fresh ones

  /// Forward and backward: loss_sum() += sum over targets of -log p, gradients += those of
  /// scale * that sum. On the step's last micro-batch (`last`) the sums over the buckets' groups
  /// start as soon as each gradient is complete, and `sink` is told of those that are done before
  /// the pass is over.
  void train(const MicroBatch& batch, PassInfo pass, double scale, bool last,
             const GradientSink* sink = nullptr);
  /// The same, recorded by the queue as one graph. `shape` names the sequence of operations: equal
  /// for passes that do the same with other data.
  void train_recorded(const MicroBatch& batch, PassInfo pass, double scale, bool last, int shape,
                      const GradientSink* sink = nullptr);
  /// What train(last) does of a step's gradients where there is no micro-batch: they are 0.
  void train_nothing(const GradientSink* sink = nullptr);
  /// Forward only: loss_sum() += ...
  void evaluate(const MicroBatch& batch, PassInfo pass);
  /// Host copy [all rows, V] of the logits after some rows of this pass, slab after slab, on every
  /// rank of the cuboid. ids [1, rows of the slab] in host memory; the unit of `tokens` is a
  /// sequence.
  [[nodiscard]] std::vector<float> logits(std::span<const std::int32_t> ids,
                                          const Partition& tokens, PassInfo pass,
                                          const HeadLoss::RowsOfSlabs& rows);

  /// Waits for the sums started by train(last) or train_nothing().
  void finish_gradients();
  void drop_gradients();
  /// Master weights have changed.
  void weights_changed();

  void clear_loss();
  /// Sum of losses so far on this rank; blocks the host.
  [[nodiscard]] double loss_sum();
  /// The same [1,1] fp64, for whoever need not know it yet.
  [[nodiscard]] ConstTensorView loss_sum_on_device() const { return loss_sum_; }

  [[nodiscard]] const std::vector<ParamBucket*>& buckets() const { return buckets_; }
  [[nodiscard]] const ModelShape& shape() const { return shape_; }

 private:
  struct Uploaded {
    Tensor ids, targets;
  };
  [[nodiscard]] Tensor send_ids(std::span<const std::int32_t> ids);
  [[nodiscard]] Uploaded upload(const MicroBatch& batch, index_t length);
  void run_training(const Uploaded& data, const Partition& tokens, const PassInfo& pass,
                    double scale, bool last, const GradientSink* sink);
  /// Starts the sums of a block's gradients, and of what blocks share.
  void reduce_block(std::size_t number, const GradientSink* sink);
  void reduce_shared();
  void release_shared();
  void tell(const GradientSink* sink, const std::vector<ParamBucket*>& complete);
  [[nodiscard]] DistTensor forward(ConstTensorView ids, const Partition& tokens,
                                   const PassInfo& pass, std::vector<Block::Saved>* saved);

  const Context& context_;
  ModelShape shape_;
  std::vector<std::unique_ptr<ParamBucket>> owned_;
  std::vector<ParamBucket*> buckets_;                     // in the order of parameter_buckets()
  ParamBucket *table_ = nullptr, *head_table_ = nullptr;  // the same where tied
  ParamBucket *inner_vectors_ = nullptr, *hidden_vectors_ = nullptr;
  ParamBucket* head_vectors_ = nullptr;  // only with qk_norm
  AdapterBuckets adapters_;
  std::vector<ParamBucket*> shared_;  // of all blocks: vectors and adapters, gathered for a pass
  std::unique_ptr<Embedding> embedding_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::unique_ptr<Norm> final_norm_;
  std::unique_ptr<HeadLoss> head_;
  Tensor loss_sum_;  // [1,1] fp64
};

}  // namespace t3d
