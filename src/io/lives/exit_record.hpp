// exit.json of a run folder: how the last training in it ended, for scripts. A launcher's own
// status says less (mpirun ends with 1 when it is itself asked to stop, whatever its ranks return).
#pragma once
#include <optional>
#include <string>

#include "core/error.hpp"
#include "core/types.hpp"

namespace t3d {

/// Which life: a left-over of an earlier one must not speak for a later one.
struct Epoch {
  std::string cluster, job;  // Slurm's; empty without
  index_t restart = 0;       // how often Slurm had restarted the job
  std::string token;         // of the run's lock; empty where it is not known
};
/// Of this process, in the life that holds the lock of this token.
[[nodiscard]] Epoch epoch_of_lock(const std::string& token);

struct ExitRecord {
  ExitCode code = ExitCode::done;
  std::string reason;                 // one sentence
  index_t step = 0;                   // steps done
  std::optional<index_t> checkpoint;  // step of the newest checkpoint that was read or written
  bool goes_on = false;               // whoever can should start the job again
  bool requeues = false;              // the program does so itself, as its last act
  bool paused = false;                // at run.pause_at: a job of another size is to go on
  bool undecided = false;             // Slurm has not yet said whether `requeues` holds
  Epoch epoch{};                      // of the life that has ended
};

/// Replaces DIR/exit.json at once. Several ranks, and several threads of one, may do so at the same
/// time: `rank` keeps the unfinished files of ranks apart. Throws Error(io), and Error(unavailable)
/// where the folder is another life's by now.
void write_exit_record(const std::string& dir, const ExitRecord& record, int rank);

/// Nothing when there is none. Error(io) when it cannot be read, or is no such record.
[[nodiscard]] std::optional<ExitRecord> read_exit_record(const std::string& dir);

/// A training that begins has not ended: whoever finds no record knows that it runs or was killed.
void remove_exit_record(const std::string& dir);

}  // namespace t3d
