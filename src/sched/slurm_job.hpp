// What Slurm knows of the job that this program runs in, from its commands' output. Formats as of
// Slurm 20.11 to 24.11 (scontrol -o show job, show partition, show config).
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace t3d {

struct SlurmJob {
  std::string id, state, partition;  // state: RUNNING, COMPLETING, ...
  bool batch = false;                // has a script, and so can be started again
  bool requeue = false;              // Slurm may start it again under the same id
  /// It ends, and neither its owner nor itself has ended it: it was preempted without a grace, or
  /// KILL hit its script, for which Slurm takes it for failed.
  bool cut_off = false;
  int restarts = 0;
  std::string comment;                 // its first word
  std::optional<double> left_seconds;  // to its time limit; none = no limit, or not known
  bool unlimited = false;              // it has none
};

/// Of the job, or the task of an array, that this process belongs to; "" outside Slurm.
[[nodiscard]] std::string slurm_job_id();

/// Its end as it looked when it began, SLURM_JOB_END_TIME: seconds since 1970; 0 where nobody says.
[[nodiscard]] double slurm_job_end();

/// Of one line of `scontrol -o show job ID` (the first, where a heterogeneous job has several).
/// Nothing where the text is not of that form.
[[nodiscard]] std::optional<SlurmJob> slurm_job_of(std::string_view scontrol_text);

/// GraceTime of `scontrol -o show partition NAME`, in seconds: between the signal and the kill,
/// when a job of higher priority takes the nodes. Nothing where it is not said, or no job is
/// preempted.
[[nodiscard]] std::optional<double> grace_seconds_of(std::string_view scontrol_text);

/// "MM:SS", "HH:MM:SS" or "D-HH:MM:SS", as Slurm writes times; nothing for "UNLIMITED" and the
/// like.
[[nodiscard]] std::optional<double> seconds_of_slurm_time(std::string_view text);

/// The value after "KEY=", up to the next space; "" where the key is missing.
[[nodiscard]] std::string value_of_key(std::string_view text, std::string_view key);

}  // namespace t3d
