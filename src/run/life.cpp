#include "run/life.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "comm/busy.hpp"
#include "core/utf8.hpp"
#include "device/process_status.hpp"
#include "io/lock/lock_owner.hpp"

namespace t3d {
namespace {

constexpr std::size_t kReasonBytes = 200;  // of the life before, in a sentence

double seconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

std::string not_kept(const std::exception& error) {
  return fmt::format("the record of this life in lives.jsonl is not kept: {}", error.what());
}

std::string why_it_starts(const std::string& restart, const std::optional<LifeRecord>& before) {
  const bool asked = restart != "auto";
  if (!before)
    return asked && restart != "never" ? fmt::format("new run, -r {}", restart) : "new run";
  const std::string reason = before->reason.value_or(kNoWord);
  return fmt::format("{} after: {}", asked ? "-r " + restart : "continued",
                     printable(reason.substr(0, reason.find('\n')), kReasonBytes));
}

/// An earlier life of the same job, which Slurm has started again, or of its chain
/// (jobs/chain.sbatch).
bool has_brought(const std::string& dir, const LifeRecord& now) {
  constexpr index_t kMost = 1000;
  const bool chain = std::getenv("T3D_CHAIN") != nullptr;
  if (!chain && now.restart == 0) return false;
  try {
    const std::vector<LifeRecord> lives = last_lives(dir, kMost);
    return std::any_of(lives.begin(), lives.end(), [&](const LifeRecord& life) {
      return has_progressed(life) && (chain || (now.job && life.job == now.job));
    });
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

/// False, and a warning, when `work` fails.
template <class Work>
bool Life::keep(const Work& work) {
  const BusyScope busy("writing the record of this life in " + dir_);
  try {
    lock_->check(dir_);  // the files may be another job's by now
    work();
    return true;
  } catch (const std::exception& error) {
    warn_(not_kept(error));
    return false;
  }
}

void Life::begin(const Config& config, const RunLock& lock, index_t ranks, index_t nodes,
                 const std::string& remark) {
  lock_ = &lock;
  dir_ = config.run.dir;
  chosen_ = config.checkpoint.restart != "auto";
  std::optional<LifeRecord> before;
  begun_ = keep([&] { before = close_open_life(dir_, config.checkpoint.dir); });
  remove_exit_record(dir_);
  if (!begun_) return forget_open_life(dir_);  // the log will no longer be that life's
  const LockOwner self = this_process(config.run.name);
  life_.life = before ? before->life + 1 : 1;
  if (!self.job.empty()) life_.job = self.job;
  life_.restart = self.restarts;
  goes_on_in_job_ = chosen_ && has_brought(dir_, life_);
  chosen_ = chosen_ && !goes_on_in_job_;
  life_.ranks = ranks;
  life_.nodes = nodes;
  life_.started = seconds_since_1970() - process_age_seconds();
  life_.why = why_it_starts(goes_on_in_job_ ? "auto" : config.checkpoint.restart, before);
  if (!remark.empty()) life_.why += "; " + remark;
  keep([&] { write_open_life(dir_, life_); });
}

void Life::goes_on(const std::optional<CheckpointInfo>& from, index_t step, index_t lineage) {
  if (!begun_) return;
  life_.from_step = step;
  life_.lineage = lineage;
  if (from) life_.checkpoint = from->path;
  // A run of a version that kept no lives, or whose records were removed.
  if (from && !chosen_ && life_.life == 1) life_.why = "continued after lives that are not known";
  keep([&] {
    add_lost_steps(dir_, step, chosen_);
    write_open_life(dir_, life_);
  });
}

std::function<void()> Life::first_step_done() {
  life_.first_step_seconds = process_age_seconds();
  return writes_life();
}

/// What is known now, whenever it is written.
std::function<void()> Life::writes_life() const {
  return [dir = dir_, life = life_, lease = lock_->lease()] {
    try {
      lease.check();
      write_open_life(dir, life);
    } catch (const std::exception& error) {
      throw Error(ExitCode::io, not_kept(error));
    }
  };
}

void Life::end(const ExitRecord& exit) {
  if (!begun_) return;
  life_ = closed_life(life_, {exit, seconds_since_1970(), {}, {}});
  keep([&] { add_ended_life(dir_, life_); });
  begun_ = false;
}

}  // namespace t3d
