#include "app/commands/put_back.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "io/log/life_files.hpp"
#include "sched/requeue.hpp"
#include "sched/slurm_job.hpp"

namespace t3d {
namespace {

void say(const std::string& text) {
  std::fputs(fmt::format("transformer3d: {}\n", text).c_str(), stderr);
}

bool is_stuck(const std::string& dir, bool progress) {
  constexpr index_t kBefore = 2;
  return !progress && lives_without_progress(dir, kBefore) == kBefore;
}

}  // namespace

PutBack plan_put_back(const std::string& dir, bool progress) {
  const std::string job = slurm_job_id();
  if (job.empty()) return {};
  if (is_stuck(dir, progress)) {
    say("three lives in a row have come to no new checkpoint: the run is not started again. A "
        "shorter "
        "checkpoint.every_minutes, or a longer time limit, may help");
    return {false, {}};
  }
  const Requeue answer = can_requeue(scontrol, job);
  if (!answer.text.empty()) say(answer.text);
  if (!answer.possible) return {!answer.over, {}};
  return {true, [job] {
            if (!requeue(scontrol, job))
              say(fmt::format("Slurm does not confirm that job {} is back in its queue", job));
          }};
}

}  // namespace t3d
