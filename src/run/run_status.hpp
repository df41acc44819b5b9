// How a run is doing, seen from outside: what its folder tells anybody who may read it. Files only;
// nothing is written, and no rank is asked.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "io/checkpoint/checkpoint_glance.hpp"
#include "io/lives/life_record.hpp"
#include "io/lives/missing_steps.hpp"
#include "io/lock/lock_look.hpp"
#include "io/log_tail.hpp"
#include "record/log/log_index.hpp"

namespace t3d {

enum class RunState {
  not_begun,  // nothing has been trained here
  starting,   // alive, before the first step of this life
  running,
  silent,   // its owner gives no sign of life: suspended, or its node is gone
  done,     // ended with 0
  stopped,  // ended with 75
  failed,   // ended with another code
  killed    // ended without a word
};

/// A loss of data.valid after a step.
struct Validated {
  double loss = 0;
  index_t step = 0;
  bool whole = false;  // of the whole set; else of its first batches
  [[nodiscard]] const char* name() const {
    return whole ? "validation of the whole set" : "validation";
  }
};

struct RunStatus {
  std::string dir;
  double now = 0;  // seconds since 1970
  RunState state = RunState::not_begun;
  LockLook lock;
  std::optional<ExitRecord> exit;
  std::optional<double> exit_time;
  std::optional<LoggedStep> last;            // the last line of log.jsonl
  std::optional<double> log_time;            // when log.jsonl was written last
  std::optional<double> median_seconds;      // of the last steps
  std::optional<double> median_rate;         // of these: tokens per second
  index_t median_of = 0;                     // so many
  std::optional<Validated> validated;        // the last of these steps, of first batches
  std::optional<Validated> validated_whole;  // of the whole set
  std::optional<CheckpointGlance> newest;    // checkpoint
  std::optional<index_t> saved_step;         // of the newest in the lineage that log.jsonl is of
  MissingSteps missing;                      // of log.jsonl, where somebody has looked for them
  std::optional<LifeRecord> life;            // that has not ended, or was killed
  std::vector<LifeRecord> lives;             // the last that have ended, the oldest first
  std::vector<std::string> events;           // of run.log: warnings and changes of plan
  std::vector<std::string> faults;           // what could not be read

  [[nodiscard]] bool alive() const {
    return state == RunState::starting || state == RunState::running || state == RunState::silent;
  }
  /// All lives, also the one that has not ended.
  [[nodiscard]] index_t life_count() const;
  [[nodiscard]] std::optional<Validated> newest_validation() const;
  /// Of the steps that are left; nothing where they or their length are not known.
  [[nodiscard]] std::optional<double> seconds_left() const;
};

[[nodiscard]] const char* name_of(RunState state);

/// Error(no_input) when `dir` is no run folder. What cannot be read of it is told in `faults`.
/// Takes some seconds where it is not clear whether the run is alive.
[[nodiscard]] RunStatus look_at_run(const std::string& dir);

/// `missing`: in log.jsonl, which should have all steps of its checkpoints, too.
void add_missing(RunStatus& status, MissingSteps missing);
/// Up to which step log.jsonl should be whole.
[[nodiscard]] std::optional<index_t> logged_step_due(const RunStatus& status);

/// For people, 80 columns; a path may be longer.
/// Events are cut to one line each where `cut`.
[[nodiscard]] std::string status_text(const RunStatus& status, bool cut = true);
/// One JSON object in one line.
[[nodiscard]] std::string status_json(const RunStatus& status);

}  // namespace t3d
