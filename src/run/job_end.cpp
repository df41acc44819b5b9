#include "run/job_end.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include "io/lives/exit_record.hpp"
#include "run/put_back.hpp"
#include "run/stopping.hpp"
#include "sched/slurm_job.hpp"
#include "sched/stop_signal.hpp"

namespace t3d {

JobEnd::JobEnd(const Config& config, int rank, Life& life, Warn warn)
    : config_(config), rank_(rank), life_(life), warn_(std::move(warn)) {}

void JobEnd::set_folder(const RunLock* lock, const Epoch& epoch) {
  lock_ = lock;
  epoch_ = epoch;
  has_folder_ = true;
}

void JobEnd::stopped(unsigned flags) {
  stop_flags_ = flags;
  goes_on_ = Stopping::goes_on(flags);
}

void JobEnd::paused() { goes_on_ = paused_ = true; }

void JobEnd::fault_may_pass() { may_pass_ = true; }

namespace {

/// As it stands in files and lists: faults of an input have a line each.
std::string in_one_line(const std::string& text) {
  std::string line;
  for (const char letter : text) {
    if (letter == '\n')
      line += line.ends_with(':') ? "" : ";";
    else if (letter != ' ' || !line.ends_with(' '))
      line += letter;
  }
  while (line.ends_with(';') || line.ends_with(' ')) line.pop_back();
  return line;
}

}  // namespace

void JobEnd::record(ExitCode code, const std::string& reason, const Progress& progress) {
  // Asked to stop while the folder, or a file, was waited for: no step has come to its end.
  const bool before =
      code == ExitCode::retry && stop_flags_ == kNoFlag && !paused_ && stop_signal() != SIGINT;
  if (before) stop_flags_ = kStopAsked;
  // Lives are counted in the folder: without it there would be no end of them.
  goes_on_ = goes_on_ || before || code == ExitCode::peer_lost || (may_pass_ && has_folder_);
  const bool writes = has_folder_ && !folder_is_anothers();
  const index_t saved = progress.last_saved;
  ExitRecord record{
      code, in_one_line(reason), std::max(progress.done, saved), {}, goes_on_, false, paused_};
  if (saved >= 0) record.checkpoint = saved;
  record.epoch = epoch_;
  if (goes_on_ && !paused_) {
    // Slurm's answers may take longer than the launcher leaves this process.
    record.undecided = config_.run.requeue && !slurm_job_id().empty();
    if (writes && record.undecided) write(record);
    plan_last_act(progress);
    record.undecided = false;
  }
  if (!writes) return;
  record.goes_on = goes_on_;
  record.requeues = last_act_ != nullptr;
  write(record);
  life_.end(record);
}

void JobEnd::write(const ExitRecord& record) const {
  try {
    write_exit_record(config_.run.dir, record, rank_);
  } catch (const Error& error) {
    warn_(error.what());
  }
}

void JobEnd::plan_last_act(const Progress& progress) {
  if (!config_.run.requeue) return;
  // Without the folder nothing is known of lives.
  const bool brought =
      !has_folder_ || progress.last_saved > std::max<index_t>(0, progress.began_at);
  const bool cut_short = progress.steps_begun == 0 && (stop_flags_ & kStopAsked) != 0;
  PutBack plan = plan_put_back(config_.run.dir, brought     ? LifeYield::checkpoint
                                                : cut_short ? LifeYield::cut_short
                                                            : LifeYield::nothing);
  goes_on_ = plan.goes_on;
  last_act_ = std::move(plan.act);
}

// A lost lock of the checkpoint folder alone leaves the run folder ours.
bool JobEnd::folder_is_anothers() const {
  if (lock_ == nullptr || !lock_->lost()) return false;
  try {
    lock_->check(config_.run.dir);
    return false;
  } catch (const Error& error) {
    return error.code() == ExitCode::unavailable;
  }
}

}  // namespace t3d
