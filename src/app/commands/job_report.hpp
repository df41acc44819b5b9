// JobReport: what the main job tells its user. Collects each step's figures, checks counted against
// predicted bytes, and writes lines, log.jsonl and the end table through RunLog (rank 0).
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "core/config.hpp"
#include "core/run_event.hpp"
#include "io/log/run_log.hpp"
#include "train/step/trainer.hpp"

namespace t3d {

class JobReport {
 public:
  JobReport(Communicator& world, Machine& machine, const Config& config, index_t steps,
            index_t start_step, bool quiet);

  /// The opening lines. Collective.
  void open(Trainer& trainer);
  void note(const std::string& text) { log_.note(text); }
  void warn(const std::string& text) { log_.warn(text); }
  void write_resolved(const std::string& text) { log_.write_resolved(text); }

  /// Runs work with the ledger watching; `predicted` is its formula.
  void counted_step(const std::function<void()>& work, const Ledger& predicted);
  double counted(const std::function<double()>& work, const Ledger& predicted);

  void step(const StepReport& step, std::optional<double> valid_loss);
  /// The end table. Collective.
  void finish(const std::string& reason);

 private:
  void add_bytes(const Ledger& predicted);
  [[nodiscard]] std::vector<PhaseRow> phase_rows();
  [[nodiscard]] std::vector<AxisRow> axis_rows();
  [[nodiscard]] std::string memory_line();
  [[nodiscard]] std::string batch_remark() const;

  Communicator& world_;
  Machine& machine_;
  Config config_;
  index_t steps_, first_step_, steps_done_ = 0;
  RunLog log_;
  double gemm_rate_ = 0;  // flops per second of all ranks
  double start_seconds_ = 0, step_seconds_ = 0, step_tokens_ = 0;
  double noise_sequences_ = 0;  // the last that was measured; 0 = none
  std::map<std::string, double> phases_before_;
  std::map<std::string, index_t> counted_, predicted_, step_bytes_;
};

}  // namespace t3d
