// exit.json of a run folder: how the last training in it ended, for scripts. A launcher's own
// status says less (mpirun ends with 1 when it is itself asked to stop, whatever its ranks return).
#pragma once
#include <optional>
#include <string>

#include "core/error.hpp"
#include "core/types.hpp"

namespace t3d {

struct ExitRecord {
  ExitCode code = ExitCode::done;
  std::string reason;                 // one sentence
  index_t step = 0;                   // steps done
  std::optional<index_t> checkpoint;  // step of the newest checkpoint that was read or written
  bool goes_on = false;               // whoever can should start the job again
  bool requeues = false;              // the program does so itself, as its last act
  bool paused = false;                // at run.pause_at: a job of another size is to go on
};

/// Replaces DIR/exit.json at once. Several ranks, and several threads of one, may do so at the same
/// time: `rank` keeps the unfinished files of ranks apart. Throws Error(io).
void write_exit_record(const std::string& dir, const ExitRecord& record, int rank);

/// Nothing when there is none. Error(io) when it cannot be read, or is no such record.
[[nodiscard]] std::optional<ExitRecord> read_exit_record(const std::string& dir);

/// A training that begins has not ended: whoever finds no record knows that it runs or was killed.
void remove_exit_record(const std::string& dir);

}  // namespace t3d
