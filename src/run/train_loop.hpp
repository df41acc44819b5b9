// The steps of a training job. A step begins with the wishes of this rank and ends with the report
// of all; what they have agreed on in it is done here: a validation, a checkpoint, other shares or
// another plan, a stop.
#pragma once
#include "config/config.hpp"
#include "core/run_event.hpp"
#include "io/lock/run_lock.hpp"
#include "run/balancing.hpp"
#include "run/evaluation.hpp"
#include "run/job_report.hpp"
#include "run/last_words.hpp"
#include "run/life.hpp"
#include "run/provenance.hpp"
#include "run/saving.hpp"
#include "run/start_clock.hpp"
#include "run/stopping.hpp"
#include "train/machine.hpp"
#include "train/step/trainer.hpp"

namespace t3d {

class JobState;

/// On rank 0. The save that follows ends the run with an error.
[[nodiscard]] inline bool is_lost(const RunLock* lock) { return lock != nullptr && lock->lost(); }

/// Here a job of another size is to go on.
[[nodiscard]] inline bool is_paused(const Config& config, const Trainer& trainer) {
  return config.run.pause_at > 0 && trainer.progress().steps >= config.run.pause_at;
}

class TrainLoop {
 public:
  struct Parts {
    Communicator& world;
    const Config& config;
    JobState& state;
    Machine& machine;
    Trainer& trainer;
    JobReport& report;
    Stopping& stopping;
    Evaluation& evaluation;
    Balancing& balancing;
    Saving& saving;
    Provenance& provenance;
    Life& life;
    LastWords& last_words;
    StartClock& start_clock;
    RunLock* lock;  // rank 0's
    const Provenance::Later& later;
  };
  explicit TrainLoop(const Parts& parts);

  /// Collective, until the steps are done, the run pauses, or it is asked to stop.
  void run();
  /// It came to a stop before the end.
  [[nodiscard]] bool stopped() const { return stopped_; }
  /// ... which was that after the last step.
  [[nodiscard]] bool lacks_evaluation() const { return lacks_evaluation_; }
  /// At run.pause_at.
  [[nodiscard]] bool has_paused() const { return paused_; }
  /// Those flags of kStopFlags that asked for the stop.
  [[nodiscard]] unsigned stop_flags() const { return decision_.stop; }
  /// By this process, and begun.
  [[nodiscard]] index_t steps_run() const { return steps_run_; }

 private:
  [[nodiscard]] unsigned wishes() const;
  [[nodiscard]] bool due_at(index_t step) const;
  [[nodiscard]] bool lost_lock() const { return is_lost(parts_.lock); }
  [[nodiscard]] bool paused() const { return is_paused(parts_.config, parts_.trainer); }
  void mend_replicas();
  void rebalance();
  void replan_as_asked(const Plan& plan);
  void reshape(const Plan& plan, const std::string& reason);
  void keep_choices();
  void take_reports(index_t left);
  Evaluation::Result evaluate_after(const StepReport& step, bool last);
  void warn_of_lock();
  void save(bool now);

  Parts parts_;
  Decision decision_;             // of the steps whose reports have been read
  std::uint64_t agreed_ = 0;      // what all ranks said in the last report that they decided
  std::uint64_t mended_ = 0;      // times that replicas differed
  bool replicas_differ_ = false;  // as a report said that was read
  bool stopped_ = false;
  bool lacks_evaluation_ = false;
  bool paused_ = false;
  double last_save_time_ = 0;
  index_t steps_run_ = 0;
  index_t steps_reported_ = 0;
};

}  // namespace t3d
