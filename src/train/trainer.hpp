// Trainer: the model, its optimizer and its data on one rank; a step, an evaluation, and the state
// that a checkpoint holds. Nothing here decides when to stop or to save.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/run_event.hpp"
#include "data/batch_source.hpp"
#include "io/checkpoint.hpp"
#include "layers/transformer.hpp"
#include "train/aggregate.hpp"
#include "train/machine.hpp"
#include "train/optimizer.hpp"

namespace t3d {

/// Reads the sequences of this rank's slab out of [position, position + sequences).
class SlabReader {
 public:
  /// `source` may be null: ids are then 0 (dry runs). The spans live until the next call.
  [[nodiscard]] MicroBatch read(const Context& context, const ModelShape& shape,
                                BatchSource* source, index_t position, index_t sequences);

 private:
  std::vector<std::int32_t> ids_, targets_;
};

class Trainer {
 public:
  /// `source` may be null in a dry run. Weights are initialised from run.seed.
  Trainer(Machine& machine, const Config& config, index_t steps,
          std::shared_ptr<BatchSource> source);

  /// Step number `done` + 1. `stop_requests`: this rank's wishes, or-ed over all ranks.
  [[nodiscard]] StepReport step(int stop_requests);
  /// evaluate_model in the run's micro-batches.
  [[nodiscard]] double evaluate(BatchSource& source, index_t sequences);

  [[nodiscard]] index_t steps_done() const { return done_; }
  void set_steps_done(index_t done) { done_ = done; }

  /// Weights and optimizer state as boxes of global tensors.
  [[nodiscard]] std::vector<TensorPart> parts();
  /// After parts() were filled from a checkpoint.
  void weights_changed() { model_.weights_changed(); }

  [[nodiscard]] Transformer& model() { return model_; }
  /// Bytes that this rank sends in one step; the formula side of the ledger.
  [[nodiscard]] Ledger predicted_step() const;
  [[nodiscard]] Ledger predicted_evaluation(index_t sequences) const;

 private:
  [[nodiscard]] std::vector<double> reduce_report(double sum_squares, int stop_requests);
  [[nodiscard]] index_t evaluation_share(index_t sequences, index_t replica) const;

  Machine& machine_;
  const Context& context_;
  Config config_;
  index_t steps_;
  std::shared_ptr<BatchSource> source_;
  ReplicaShare share_;
  Transformer model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Aggregation> aggregation_;
  index_t done_ = 0;
  double last_own_seconds_ = 0;
  SlabReader reader_;
};

/// Mean loss of `model` over the first `sequences` samples of `source`, dealt to the replicas in
/// passes of up to `micro`. Collective over the world.
[[nodiscard]] double evaluate_model(const Context& context, Transformer& model, BatchSource& source,
                                    index_t sequences, index_t micro, index_t replicas);

/// Sequences per pass of an evaluation.
[[nodiscard]] index_t evaluation_micro(const Config& config);

}  // namespace t3d
