// JobReport: what the main job tells its user. Collects each step's figures, checks counted against
// predicted bytes, and writes lines, log.jsonl and the end table through RunLog (rank 0).
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "config/config.hpp"
#include "core/folded.hpp"
#include "core/run_event.hpp"
#include "record/log/rank_history.hpp"
#include "record/log/run_log.hpp"
#include "run/epochs.hpp"
#include "run/step_predictor.hpp"
#include "run/tracing.hpp"
#include "train/step/trainer.hpp"

namespace t3d {

/// Of a life, when it has ended.
struct RunTotals {
  index_t steps = 0;
  double seconds = 0;  // from the begin of the first step
  std::vector<AxisRow> axes;
  double tensor_bytes = 0, resident_bytes = 0;  // the largest rank's peak
};

class JobReport {
 public:
  JobReport(Machine& machine, const Config& config, index_t start_step, const LogLineage& lineage,
            bool quiet);

  /// Which program, model and plan: the first lines.
  void banner(const Trainer& trainer);
  /// What was measured before the steps. `rate`: for MFU. Collective.
  void open(const Trainer& trainer, double rate);
  /// From here on bytes and times are those of steps.
  /// On rank 0: steps are predicted by this from now on; `run`: the run's id.
  void predict_by(std::unique_ptr<StepPredictor> predictor, const std::string& run);
  /// Steps and the end say how often the texts were read.
  void count_epochs(EpochCount epochs) { epochs_ = std::move(epochs); }
  void begin_steps();
  void note(const std::string& text) { log_.note(text); }
  /// Of the start, where lines are long: in lines of kColumns.
  void note_folded(const std::string& text) { log_.note(folded(text, 2)); }
  void warn(const std::string& text) { log_.warn(text); }
  /// As RunLog's.
  void later(const std::string& what, std::function<void()> work) {
    log_.later(what, std::move(work));
  }
  void sync_files() { log_.sync(); }
  void settle_files(double seconds) { log_.settle(seconds); }
  [[nodiscard]] const FileService* files() const { return log_.files(); }
  void write_resolved(const std::string& text) { log_.write_resolved(text); }

  /// Something has been done whose bytes a formula knows; everything that is sent between two steps
  /// must be in one of them, or under an axis of its own that has no formula (checkpoints,
  /// text samples).
  void expect(const Ledger& predicted) { predicted_now_.merge(predicted); }

  /// A step is done. Its line counts everything since the step before.
  /// `valid`: of the validation sets, where they were evaluated.
  void step(const Trainer& trainer, const StepReport& step, const std::vector<NamedLoss>& valid);
  /// The plan has changed between two steps; `reason` in words.
  void reshaped(double seconds, const Plan& before, const Plan& plan, const std::string& reason);
  /// No step after this one may be started before its report.
  [[nodiscard]] bool bounds_trace(index_t step) const {
    return tracing_ != nullptr && tracing_->bounded_by(step);
  }
  /// A checkpoint is under way beside the steps, or no longer.
  void writing(bool under_way) {
    if (tracing_) tracing_->writing(under_way);
  }
  /// The tables of the end, in the middle. Collective.
  void interim();
  /// The end table. Collective.
  void finish(const std::string& reason);
  /// As finish() has told them.
  [[nodiscard]] const RunTotals& totals() const { return totals_; }
  /// Flops per second of all ranks by the data sheets; 0 = not known.
  [[nodiscard]] double peak_rate() const { return vendor_rate_; }

 private:
  struct Pause {
    double state_seconds = 0;
    std::vector<double> steps;  // seconds of those that followed
  };
  void close_books();
  void trace_books(index_t step);
  void tell(const TraceNews& news);
  void add_times(const Plan& plan, const StepReport& step);
  void report_pause(double step_seconds);
  [[nodiscard]] std::vector<PhaseRow> phase_rows();
  [[nodiscard]] std::vector<AxisRow> axis_rows();
  [[nodiscard]] std::string memory_line();
  [[nodiscard]] std::string factors_path() const;
  void save_factors();
  void write_plot();
  void report_difference();
  [[nodiscard]] double vendor_rate(const Plan& plan) const;
  void raise_matmul_rate(double flops);
  [[nodiscard]] std::string mfu_remark() const;
  [[nodiscard]] std::string batch_remark() const;

  Machine& machine_;
  Communicator& world_;
  Config config_;
  index_t first_step_, steps_done_ = 0;
  RunLog log_;
  // Matmul flops per second of all ranks: measured, and by their data sheets; 0 = not known.
  double gemm_rate_ = 0, vendor_rate_ = 0;
  bool rate_was_low_ = false;  // steps have been faster: then it is theirs
  double token_flops_ = 0;     // of training, per token
  double start_seconds_ = 0, step_seconds_ = 0, step_tokens_ = 0;
  double noise_sequences_ = 0;  // the last that was measured; 0 = none
  index_t sequences_ = 0;       // of the last step, over all replicas
  std::map<std::string, double> phases_before_;
  Ledger counted_, predicted_, predicted_now_;  // of the whole run; since the last step
  std::map<std::string, index_t> step_bytes_;
  std::optional<Pause> pause_;      // of a change of plan whose price is not known yet
  std::vector<std::string> nodes_;  // host names, by rank
  EpochCount epochs_;
  std::unique_ptr<StepPredictor> predictor_;  // on rank 0, with hetero.cluster
  std::string run_;                           // its id, where steps are predicted
  std::string earlier_;                       // its factors of the lives before; empty = none
  RankHistory history_;                       // on rank 0
  /// What the ranks compute under the plan in force, and under the one before: times are reported a
  /// step later.
  struct PlanWork {
    std::vector<index_t> slabs;  // sequences
    std::vector<RankLoad> ranks;
  };
  PlanWork work_, work_before_;
  bool plan_is_new_ = true;  // to work_
  index_t last_step_ = 0;
  RunTotals totals_;
  std::unique_ptr<Tracing> tracing_;  // until its window is over
  std::string difference_;            // the first of counted and predicted bytes
};

}  // namespace t3d
