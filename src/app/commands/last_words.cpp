#include "app/commands/last_words.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "io/log/life_files.hpp"
#include "sched/slurm_job.hpp"

namespace t3d {
namespace {

/// One line at the end of a file that other processes write, too: whole, or not at all.
void append_line(const std::string& path, const std::string& text) {
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  const std::string line = text + "\n";
  (void)!write(file, line.data(), line.size());
  close(file);
}

/// Whatever does not answer (a file system, Slurm) must not keep the process.
void end_within(std::chrono::seconds limit) {
  std::thread([limit] {
    std::this_thread::sleep_for(limit);
    _exit(static_cast<int>(ExitCode::peer_lost));
  }).detach();
}

void say_on_screen(const std::string& text) {
  std::fputs(fmt::format("transformer3d: {}\n", text).c_str(), stderr);
}

}  // namespace

bool is_stuck(const std::string& dir, bool progress) {
  constexpr index_t kBefore = 2;
  return !progress && lives_without_progress(dir, kBefore) == kBefore;
}

Requeue requeue_of(const std::string& dir, bool progress, const std::string& job) {
  if (is_stuck(dir, progress))
    return {false,
            "three lives in a row have come to no new checkpoint: the run is not started again. A "
            "shorter checkpoint.every_minutes, or a longer time limit, may help",
            true};
  return can_requeue(scontrol, job);
}

void LastWords::set_folder(const std::string& dir) {
  const std::lock_guard lock(mutex_);
  dir_ = dir;
}

void LastWords::set_requeue(bool requeue) {
  const std::lock_guard lock(mutex_);
  requeue_ = requeue;
}

void LastWords::set_progress(index_t step, index_t checkpoint) {
  if (!has_started_) first_checkpoint_ = checkpoint;
  has_started_ = true;
  step_ = step;
  checkpoint_ = checkpoint;
}

void LastWords::write_record() {
  try {
    write_exit_record(dir_, record_, rank_);
  } catch (const std::exception& error) {
    say_on_screen(error.what());
  }
}

void LastWords::say(const PeerLoss& loss) {
  end_within(std::chrono::seconds(8));
  const std::lock_guard lock(mutex_);
  // Who has ended with an error has said why, or another rank has noticed the loss: exit.json of
  // before this life is gone since its start.
  if (!dir_.empty() && has_record()) return say_on_screen(loss.text);
  has_spoken_ = true;
  record_ = {ExitCode::peer_lost, loss.text, step_, {}, true};
  std::string text = fmt::format("{}; this run ends after step {}", loss.text, record_.step);
  if (const index_t saved = checkpoint_; saved >= 0) {
    record_.checkpoint = saved;
    text += fmt::format(", and the same command goes on from the checkpoint of step {}", saved);
  }
  say_on_screen(text);
  if (dir_.empty()) return;
  append_line(dir_ + "/run.log", "error: " + text);
  write_record();
}

bool LastWords::has_record() const {
  try {
    return read_exit_record(dir_).has_value();
  } catch (const std::exception&) {
    return false;
  }
}

void LastWords::put_back(const std::string& job) {
  const bool progress = checkpoint_ > std::max<index_t>(0, first_checkpoint_);
  const Requeue answer = requeue_of(dir_, progress, job);
  record_.goes_on = !answer.over;
  record_.requeues = answer.possible;
  if (!dir_.empty() && (answer.over || answer.possible)) write_record();
  if (!answer.text.empty()) say_on_screen(answer.text);
  if (answer.possible && !requeue(scontrol, job))
    say_on_screen(fmt::format("Slurm does not confirm that job {} is back in its queue", job));
}

// By now the others end, too.
void LastWords::end() {
  const std::lock_guard lock(mutex_);
  const std::string job = slurm_job_id();
  if (has_spoken_ && requeue_ && !job.empty()) put_back(job);
  _exit(static_cast<int>(ExitCode::peer_lost));
}

}  // namespace t3d
