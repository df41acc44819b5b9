#include "sched/requeue.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "core/phase_clock.hpp"
#include "sched/ask.hpp"
#include "sched/slurm_job.hpp"

namespace t3d {

std::optional<std::string> scontrol(const std::vector<std::string>& words) {
  constexpr double kSeconds = 10;
  std::vector<std::string> all{"scontrol"};
  all.insert(all.end(), words.begin(), words.end());
  return output_of(all, kSeconds);
}

Requeue can_requeue(const Scontrol& scontrol, const std::string& job_id) {
  if (job_id.empty()) return {};
  const auto text = scontrol({"-o", "show", "job", job_id});
  const std::optional<SlurmJob> job = text ? slurm_job_of(*text) : std::nullopt;
  if (!job)
    return {.silent = !text,
            .text = "Slurm does not say what it knows of this job: run the same command again"};
  if (!job->batch)
    return {
        .text =
            "this job has no script that Slurm could start again (sbatch): run the same command "
            "again"};
  if (job->state == "PENDING") return {};  // somebody has done it
  if (job->state != "RUNNING" && !job->cut_off)
    return {
        .text = fmt::format("Slurm says that this job is {}: it is not started again", job->state),
        .over = true};
  if (!job->requeue)
    return {
        .text =
            "Slurm may not start this job again (sbatch --requeue allows it): unless its script "
            "submits the next one, submit it again"};
  return {.possible = true, .ended = job->cut_off, .text = {}};
}

std::string requeue(const Scontrol& scontrol, const std::string& job_id, const Patience& patience) {
  constexpr int kRefusals = 3;
  const double deadline = PhaseClock::now() + patience.seconds;
  int refused = 0;
  while (true) {
    const Requeue answer = can_requeue(scontrol, job_id);
    if (!answer.possible && !answer.silent) return answer.text;
    // "Incomplete": not one that was cancelled since.
    if (answer.possible &&
        scontrol(answer.ended ? std::vector<std::string>{"requeue", job_id}
                              : std::vector<std::string>{"requeue", "Incomplete", job_id}))
      return {};
    if (answer.possible) ++refused;
    if (refused == kRefusals || PhaseClock::now() > deadline)
      return fmt::format("Slurm does not confirm that job {} is back in its queue", job_id);
    std::this_thread::sleep_for(std::chrono::duration<double>(patience.pause_seconds));
  }
}

}  // namespace t3d
