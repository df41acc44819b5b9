// The state of a training job: machine, plan and trainer, and where they come from (the checkpoint
// that checkpoint.restart asks for, the weights that init.from names, or nothing). With it, what
// tells this run from others: id, lineage, tokenizer and data, which its checkpoints and records
// name. Its steps: train_job; its end: job_end.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "record/log/run_record.hpp"
#include "run/balancing.hpp"
#include "run/continuation.hpp"
#include "run/first_plan.hpp"
#include "run/init_weights.hpp"
#include "run/job_report.hpp"
#include "run/life_plan.hpp"
#include "run/replan.hpp"
#include "run/start_clock.hpp"
#include "run/texts.hpp"
#include "run/tokenizer_check.hpp"

namespace t3d {

class JobState {
 public:
  /// Collective. Throws where the ranks together are asked to stop. `checkpoint`: step of the one
  /// that the run is about to go on from, or -1.
  using StopIfAsked = std::function<void(index_t checkpoint)>;

  /// All of these are read from begin() on. `config`: the input; its keys that nobody wrote get the
  /// values of the plan that is continued.
  JobState(Communicator& world, Config& config, const Origins& origins, const Texts& texts,
           StartClock& clock, StopIfAsked stop_if_asked);

  /// Collective. Makes machine, plan and trainer, and fills them. `warn` hears what is passed over
  /// or not taken over, also where this throws (on all ranks alike).
  void begin(const Warn& warn);
  /// Collective, after begin(). Which run this is, and what it is trained on, compared with what it
  /// was: AgreedError(config) where that is another tokenizer, or a file with other contents.
  void identify(const Warn& warn);

  /// Steps of the whole run; 0 as long as there is no trainer.
  [[nodiscard]] index_t steps_done() const { return trainer_ ? trainer_->progress().steps : 0; }

  // From here on: once it has begun.
  [[nodiscard]] Machine& machine() const { return *machine_; }
  [[nodiscard]] Trainer& trainer() const { return *trainer_; }
  /// That this life goes on from, if any.
  [[nodiscard]] const std::optional<CheckpointInfo>& checkpoint() const { return from_->info(); }
  /// With what the life began: the trainer may have another plan by now.
  [[nodiscard]] const LifePlan& planned() const { return planned_; }
  /// Collective. What these ranks reach in matmuls, in flops per second; to_save() keeps it.
  double measure_matmul_rate();
  /// Collective. What Balancing needs to know for plans that move state; nothing where the user
  /// wrote how many sequences each rank reads.
  [[nodiscard]] std::optional<Balancing::Replanning> replanning() const;
  /// What debug.replan asks for after this step, if anything.
  [[nodiscard]] const Replan* replan_after(index_t step) const;

  // Once it is identified.
  [[nodiscard]] const std::string& run_id() const { return run_id_; }
  [[nodiscard]] const Lineage& lineage() const { return lineage_; }
  [[nodiscard]] const RunTokenizer& tokenizer() const { return tokenizer_; }
  /// As it is now, but for the parts: what a checkpoint says of it.
  [[nodiscard]] CheckpointState to_save() const;
  /// On rank 0: writes the plan in force, and what it was made from, into the run folder. Throws
  /// Error(io). Elsewhere nothing happens.
  void keep_plan() const;
  /// Of the input, the data, and that the run goes on.
  void tell_origin(JobReport& report) const;
  void tell_plan(JobReport& report, bool verbose) const;
  /// A sentence on the digest of the parts as they were loaded. Where all of it was taken over,
  /// what was loaded is what was saved.
  [[nodiscard]] std::string digest_note(const std::string& digest) const;
  /// For run.json.
  void describe(LifeStart& start) const;

 private:
  void take_weights();
  void warn_of_own_checkpoints(const std::string& chosen, const Warn& warn);
  void form(const Config& asked, const std::optional<CheckpointInfo>& info);
  void stop_if_asked() const;
  void check_tokenizer();
  [[nodiscard]] std::string special_text_of_run();
  void check_data();
  [[nodiscard]] std::string new_run_id() const;

  Communicator& world_;
  Config& config_;
  const Origins& origins_;
  const Texts& texts_;
  StartClock& clock_;
  const StopIfAsked stop_if_asked_;

  std::unique_ptr<Continuation> from_;
  std::unique_ptr<Machine> machine_;
  LifePlan planned_;
  OpenMesh open_mesh_;
  std::vector<Replan> replans_;
  std::unique_ptr<Trainer> trainer_;
  std::optional<InitSource> init_source_;  // of a run that begins with weights
  std::vector<std::string> input_warnings_;

  std::string run_id_;
  Lineage lineage_;
  RunTokenizer tokenizer_;
  std::string special_text_;             // of begin and end of a text; empty = not known
  std::string data_text_, data_change_;  // data_identity.hpp
};

}  // namespace t3d
