// Who holds a lock: enough to find out, from the same host or within the same Slurm job, that the
// owner has ended, or lives. Internal to `io`.
#pragma once
#include <optional>
#include <string>

#include "core/types.hpp"

namespace t3d {

struct LockOwner {
  std::string host;
  std::string boot, processes;  // id of the kernel's boot and of the process namespace
  index_t pid = 0;
  index_t started = 0;       // clock ticks from the boot to the start of the process
  std::string cluster, job;  // Slurm's; empty without
  index_t restarts = 0;      // how often Slurm has restarted the job
  std::string run;           // name of the run, later its id
  std::string token;         // random: no two owners have the same
  index_t beats = 0;         // renewals so far; earlier versions of the program wrote none
};

/// This process, with a fresh token.
[[nodiscard]] LockOwner this_process(const std::string& run);
/// 16 hexadecimal digits that nobody else has.
[[nodiscard]] std::string random_token();

/// One line of JSON, padded so that a longer text of the same owner fits in its place. Another
/// number of renewals changes digits only: who reads meanwhile reads a record.
[[nodiscard]] std::string format_owner(const LockOwner& owner);
[[nodiscard]] std::optional<LockOwner> parse_owner(const std::string& text);
/// "process 4711 on node12, Slurm job 815, run gpt-66f1"
[[nodiscard]] std::string describe(const LockOwner& owner);

/// True only when that is certain: the same boot and process namespace as `here` and no such
/// process any more, or an earlier start of the Slurm job of `here`.
[[nodiscard]] bool has_ended(const LockOwner& owner, const LockOwner& here);
/// True only when that is certain, too: the same boot and process namespace, and the process with
/// its start time is there, perhaps suspended.
[[nodiscard]] bool is_alive(const LockOwner& owner, const LockOwner& here);

}  // namespace t3d
