// Starting a job again: Slurm never does it because of an exit status, so the job asks for itself.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace t3d {

/// What `scontrol` prints for these words; nothing where it fails or does not answer.
using Scontrol = std::function<std::optional<std::string>(const std::vector<std::string>&)>;
/// The program of that name; 10 s for an answer.
[[nodiscard]] std::optional<std::string> scontrol(const std::vector<std::string>& words);

struct Requeue {
  bool possible = false;  // the job is a batch job that runs and may be requeued
  bool ended = false;     // possible, though it ends already (SlurmJob::cut_off)
  bool silent = false;    // Slurm does not answer: it may be away for a moment
  std::string text;       // else: why not, and what to do; one sentence. "" outside Slurm, and
                          // where somebody has done it
  bool over = false;      // nobody should: the job was cancelled, or brings nothing new
};
/// Whether this job can be put back into Slurm's queue, by a life of so many restarts: a left-over
/// of an earlier life leaves the job of a later one alone.
[[nodiscard]] Requeue can_requeue(const Scontrol& scontrol, const std::string& job_id,
                                  int restarts);
/// Of this life: SLURM_RESTART_COUNT, or what Slurm itself said first where that is less. A job
/// that a restarted one has submitted has that one's count in its environment.
[[nodiscard]] int slurm_restarts();
/// Slurm has said how often it restarted this job. The first word in a life counts.
void hear_restarts(int restarts);

/// Puts it back, unless it was cancelled in the meantime. Slurm ends all its processes soon, this
/// one included: the last act. While Slurm does not answer it is asked again for so long. "" where
/// the job is back in the queue, else why not, in one sentence.
struct Patience {
  double seconds = 300, pause_seconds = 5;
};
[[nodiscard]] std::string requeue(const Scontrol& scontrol, const std::string& job_id, int restarts,
                                  const Patience& patience = {});

}  // namespace t3d
