#include "sched/requeue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "core/phase_clock.hpp"
#include "sched/ask.hpp"
#include "sched/slurm_job.hpp"

namespace t3d {

namespace {

bool is_queued(const std::string& state) {
  constexpr std::array kStates{"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED"};
  return std::find(kStates.begin(), kStates.end(), state) != kStates.end();
}

std::atomic<int> heard_restarts{-1};

}  // namespace

std::optional<std::string> scontrol(const std::vector<std::string>& words) {
  constexpr double kSeconds = 10;
  std::vector<std::string> all{"scontrol"};
  all.insert(all.end(), words.begin(), words.end());
  return output_of(all, kSeconds);
}

int slurm_restarts() {
  const char* count = std::getenv("SLURM_RESTART_COUNT");
  const int own = count == nullptr ? 0 : std::atoi(count), heard = heard_restarts;
  return heard < 0 ? own : std::min(own, heard);
}

void hear_restarts(int restarts) {
  int none = -1;
  heard_restarts.compare_exchange_strong(none, restarts);
}

Requeue can_requeue(const Scontrol& scontrol, const std::string& job_id, int restarts) {
  if (job_id.empty()) return {};
  const auto text = scontrol({"-o", "show", "job", job_id});
  const std::optional<SlurmJob> job = text ? slurm_job_of(*text) : std::nullopt;
  if (!job)
    return {.silent = !text,
            .text = "Slurm does not say what it knows of this job: run the same command again"};
  // Somebody has done it: Slurm counts a restart when the job goes back into the queue.
  if (job->restarts > restarts || is_queued(job->state)) return {};
  if (!job->batch)
    return {
        .text =
            "this job has no script that Slurm could start again (sbatch): run the same command "
            "again"};
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

std::string requeue(const Scontrol& scontrol, const std::string& job_id, int restarts,
                    const Patience& patience) {
  constexpr int kRefusals = 3;
  const double deadline = PhaseClock::now() + patience.seconds;
  int refused = 0;
  while (true) {
    const Requeue answer = can_requeue(scontrol, job_id, restarts);
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
