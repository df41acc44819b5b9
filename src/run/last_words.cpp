#include "run/last_words.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "run/put_back.hpp"
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

void say_on_screen(const std::string& text) {
  std::fputs(fmt::format("transformer3d: {}\n", text).c_str(), stderr);
}

}  // namespace

// Whatever does not answer (a file system) must not keep the process. Slurm is asked for longer:
// the other ranks have ended by then.
void LastWords::end_soon() {
  std::thread([this] {
    std::this_thread::sleep_for(std::chrono::seconds(8));
    if (asks_slurm_) std::this_thread::sleep_for(std::chrono::minutes(6));
    _exit(static_cast<int>(ExitCode::peer_lost));
  }).detach();
}

void LastWords::set_folder(const std::string& dir, const Epoch& epoch) {
  const std::lock_guard lock(mutex_);
  dir_ = dir;
  epoch_ = epoch;
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
  end_soon();
  const std::lock_guard lock(mutex_);
  // Who has ended with an error has said why, or another rank has noticed the loss: exit.json of
  // before this life is gone since its start.
  if (!dir_.empty() && has_record()) return say_on_screen(loss.text);
  has_spoken_ = true;
  record_ = {ExitCode::peer_lost, loss.text, step_, {}, true};
  record_.undecided = requeue_ && !slurm_job_id().empty();
  record_.epoch = epoch_;
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

void LastWords::hear(const PeerLoss& loss) {
  end_soon();
  say_on_screen(fmt::format("{}; this rank ends, too", loss.text));
}

bool LastWords::has_record() const {
  try {
    return read_exit_record(dir_).has_value();
  } catch (const std::exception&) {
    return false;
  }
}

void LastWords::put_back() {
  const PutBack plan = plan_put_back(dir_, checkpoint_ > std::max<index_t>(0, first_checkpoint_)
                                               ? LifeYield::checkpoint
                                               : LifeYield::nothing);
  record_.goes_on = plan.goes_on;
  record_.requeues = plan.act != nullptr;
  const bool decided = std::exchange(record_.undecided, false);
  if (!dir_.empty() && (decided || !record_.goes_on)) write_record();
  if (plan.act) plan.act();
}

// By now the others end, too.
void LastWords::end() {
  const std::lock_guard lock(mutex_);
  if (has_spoken_ && requeue_) {
    asks_slurm_ = true;
    put_back();
  }
  _exit(static_cast<int>(ExitCode::peer_lost));
}

}  // namespace t3d
