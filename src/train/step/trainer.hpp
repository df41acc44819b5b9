// Trainer: the model, its optimizer and its data on one rank; a step, an evaluation, and the state
// that a checkpoint holds. Nothing here decides when to stop or to save.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/run_event.hpp"
#include "data/batch_source.hpp"
#include "io/checkpoint/checkpoint.hpp"
#include "layers/transformer.hpp"
#include "train/step/host_image.hpp"
#include "train/step/loss_scale.hpp"
#include "train/machine.hpp"
#include "train/step/update.hpp"

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

  /// Queues step number steps_done() + 1. `stop_requests`: this rank's wishes, or-ed over all
  /// ranks. At most kMostPending steps may await their report.
  void start_step(int stop_requests);
  /// The report of the oldest started step; waits for it. Throws AgreedError where its loss or
  /// gradient is not finite (the weights are of no use then).
  [[nodiscard]] StepReport finish_step();
  [[nodiscard]] index_t pending() const { return static_cast<index_t>(pending_.size()); }
  static constexpr std::size_t kMostPending = 2;
  /// Both.
  [[nodiscard]] StepReport step(int stop_requests) {
    start_step(stop_requests);
    return finish_step();
  }
  /// evaluate_model in the run's micro-batches.
  [[nodiscard]] double evaluate(BatchSource& source, index_t sequences);

  [[nodiscard]] index_t steps_done() const { return done_; }
  void set_steps_done(index_t done) { done_ = done; }
  [[nodiscard]] LossScale& loss_scale() { return loss_scale_; }

  /// State as boxes of global tensors, in host memory: as it is now, valid until the next step.
  /// Parts whose name starts with kPrivateState may be lacking in a checkpoint of other replicas.
  [[nodiscard]] std::vector<TensorPart> parts();
  /// Of parts(), what this rank writes: over all ranks every element once.
  [[nodiscard]] std::vector<TensorPart> parts_to_save();
  static constexpr const char* kPrivateState = "aggregate/";
  /// After the last parts() were filled from a checkpoint.
  void state_loaded();

  [[nodiscard]] Transformer& model() { return model_; }
  /// Bytes that this rank sends in one step; the formula side of the ledger.
  [[nodiscard]] Ledger predicted_step() const;
  [[nodiscard]] Ledger predicted_evaluation(index_t sequences) const;

 private:
  /// What a step says of itself, as fp64 on the device: sums over ranks, then one maximum.
  enum Value { kLoss, kSquares, kStops, kOwnSeconds, kSums, kLongest = kSums, kValues };
  struct Pending {
    StepReport report;  // what the host knows already
    double* values = nullptr;
    double* summary = nullptr;
    std::unique_ptr<Marker> there;
    double started = 0, waited_before = 0;
  };
  void run_leaf(std::size_t leaf, index_t& position);
  void run_micro_batches(std::size_t leaf, index_t& position, const GradientSink* sink);
  /// Whether the pending step's gradient can be used; waits for it. Only with a dynamic loss scale.
  [[nodiscard]] bool usable(const Pending& pending);
  /// What the summary of aggregation says, into the report.
  void read_summary(const Pending& pending, StepReport& report) const;
  /// Sums the report over all ranks and starts its way to the host.
  void send_report(int stop_requests, Pending& pending);
  [[nodiscard]] index_t evaluation_share(index_t sequences, index_t replica) const;

  Machine& machine_;
  const Context& context_;
  Config config_;
  index_t steps_;
  std::shared_ptr<BatchSource> source_;
  ReplicaShare share_;
  Transformer model_;
  std::unique_ptr<Update> update_;
  index_t done_ = 0;
  LossScale loss_scale_;
  Tensor values_, clip_factor_;
  HostImage image_;
  std::unique_ptr<double[], HostRelease> host_values_;   // [kMostPending, kValues]
  std::unique_ptr<double[], HostRelease> host_summary_;  // [kMostPending, summary]
  std::deque<Pending> pending_;
  index_t started_here_ = 0;  // steps of this process
  double last_own_seconds_ = 0, last_finish_ = 0, last_waited_ = 0;
  SlabReader reader_;
};

/// Mean loss of `model` over the first `sequences` samples of `source`, dealt to the replicas in
/// passes of up to `micro`. Collective over the world.
[[nodiscard]] double evaluate_model(const Context& context, Transformer& model, BatchSource& source,
                                    index_t sequences, index_t micro, index_t replicas);

/// Sequences per pass of an evaluation.
[[nodiscard]] index_t evaluation_micro(const Config& config);

}  // namespace t3d
