#include "run/put_back.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>

#include "core/counted.hpp"
#include "io/lives/life_files.hpp"
#include "io/lock/lock_owner.hpp"
#include "sched/requeue.hpp"
#include "sched/slurm_job.hpp"

namespace t3d {
namespace {

void say(const std::string& text) {
  std::fputs(fmt::format("transformer3d: {}\n", text).c_str(), stderr);
}

/// Why the run is not to be started again, one sentence; empty where it is. Records of lives name
/// the job as this_process() does; Slurm's commands know a task of an array by another name.
std::string why_stuck(const std::string& dir, LifeYield yield) {
  constexpr index_t kBefore = 3;
  if (yield == LifeYield::checkpoint) return {};
  FruitlessLives lives = lives_without_progress(dir, kBefore);
  ++lives.all;
  const index_t unknown =
      dir.empty() ? 0 : unknown_lives(dir, this_process("").job, slurm_restarts());
  lives.all += unknown;
  if (yield == LifeYield::cut_short) ++lives.cut_short;
  if (!lives.are_too_many()) return {};
  if (unknown > 0)
    return fmt::format(
        "this life has come to no new checkpoint, its record in {}/lives.jsonl could not be kept, "
        "and Slurm has started the job again {} since the last life that is known: the run is not "
        "started again",
        dir, counted(unknown, "time"));
  if (lives.cut_short > 1)
    return "three lives in a row were asked to stop before they came to a new checkpoint, most of "
           "them before their first step: the run is not started again. A longer time limit, or a "
           "smaller number in --signal=...@SECONDS, may help";
  return "three lives in a row have come to no new checkpoint: the run is not started again. A "
         "shorter checkpoint.every_minutes, or a longer time limit, may help";
}

/// Done once: who comes second waits until it is done.
std::function<void()> act_once(const std::string& job) {
  struct Turn {
    std::mutex mutex;
    bool done = false;
  };
  return [job, turn = std::make_shared<Turn>()] {
    const std::lock_guard lock(turn->mutex);
    if (std::exchange(turn->done, true)) return;
    if (const std::string why = requeue(scontrol, job, slurm_restarts()); !why.empty()) say(why);
  };
}

}  // namespace

PutBack plan_put_back(const std::string& dir, LifeYield yield) {
  const std::string job = slurm_job_id();
  if (job.empty()) return {};
  if (const std::string why = why_stuck(dir, yield); !why.empty()) {
    say(why);
    return {false, {}};
  }
  const Requeue answer = can_requeue(scontrol, job, slurm_restarts());
  if (answer.silent) {
    say("Slurm does not answer: it is asked again for five minutes to start this job again");
    return {true, act_once(job)};
  }
  if (!answer.text.empty()) say(answer.text);
  if (!answer.possible) return {!answer.over, {}};
  return {true, act_once(job)};
}

}  // namespace t3d
