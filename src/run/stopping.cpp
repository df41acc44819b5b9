#include "run/stopping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/phase_clock.hpp"
#include "sched/stop_signal.hpp"

namespace t3d {
Stopping::Stopping(const Config& config, bool speaks) : start_(PhaseClock::now()) {
  if (!speaks) return;
  watch_ = std::make_unique<RunWatch>(RunWatch::Options{config.run.dir, config.run.hours,
                                                        slurm_job_id(), scontrol, slurm_job_end()});
  answer_stop_signals([this](int signal) { answer(signal); });
}

Stopping::~Stopping() {
  if (watch_) answer_stop_signals({});
}

namespace {

unsigned wish_of_signal() {
  const int signal = stop_signal();
  return signal == 0 ? kNoFlag : signal == SIGINT ? kInterrupted : kStopAsked;
}

}  // namespace

unsigned Stopping::wishes() {
  return wish_of_signal() | (watch_ ? watch_->take_wishes(pace_) : kNoFlag);
}

unsigned Stopping::stop_wishes() {
  return wish_of_signal() | (watch_ ? watch_->take_wishes(pace_, kStopFlags) : kNoFlag);
}

void Stopping::step_done(const StepReport& step, index_t steps) {
  if (watch_) watch_->set_progress({step.step, steps, step.loss});
  pace_.add_step(step.seconds);
  stop_seconds_ = pace_.stop_seconds();
  if (first_step_ == 0) first_step_ = PhaseClock::now() - step.seconds;
  look_at_grace();
  look_at_signal();
}

// A job script's --signal=B:USR2@120 where the time limit leaves little more than that: life after
// life does a few steps.
void Stopping::look_at_signal() {
  constexpr double kMost = 300, kSpare = 60;  // Slurm may send a signal a minute early
  const int signal = stop_signal();
  if (signal_told_ || !watch_ || (signal != SIGUSR1 && signal != SIGUSR2)) return;
  signal_told_ = true;
  const std::optional<double> left = watch_->left_seconds();
  const double now = PhaseClock::now(), stepped = now - first_step_;
  const double needed = pace_.reserve_seconds(now - start_ + left.value_or(0));
  if (!left || *left > kMost || *left < needed || *left < stepped) return;
  warnings_.push_back(fmt::format(
      "{} came {:.0f} s before the time limit, after {:.0f} s of training; this run stops within "
      "{:.0f} s. If the job script asks for the signal, a smaller number there "
      "(#SBATCH --signal=B:USR2@{:.0f}), or a longer --time, leaves more time for steps",
      strsignal(signal), *left, stepped, needed, std::ceil(needed + kSpare)));
}

void Stopping::deaf_for(double seconds) {
  pace_.add_deaf(seconds);
  stop_seconds_ = pace_.stop_seconds();
}

void Stopping::save_begun() {
  pace_.begin_save();
  stop_seconds_ = pace_.stop_seconds();
}

void Stopping::save_done(double seconds) {
  pace_.end_save();
  if (seconds > 0) pace_.add_save(seconds);
  stop_seconds_ = pace_.stop_seconds();
  look_at_grace();
}

// A step and a checkpoint that take longer than Slurm waits.
void Stopping::look_at_grace() {
  if (grace_told_ || !watch_ || !watch_->grace_seconds()) return;
  const double grace = *watch_->grace_seconds(), needed = pace_.stop_seconds();
  if (needed <= grace || pace_.save_seconds() == 0) return;
  grace_told_ = true;
  std::string text = fmt::format(
      "if a job of higher priority takes these nodes, Slurm waits {:.0f} s (GraceTime of the "
      "partition), and this run needs {:.1f} s to end its step and to write a checkpoint: all "
      "since "
      "the last checkpoint would be lost. A shorter checkpoint.every_minutes makes it less",
      grace, needed);
  if (grace > 0) text += ", and so do smaller steps";
  warnings_.push_back(text);
}

std::vector<std::string> Stopping::take_warnings() { return std::exchange(warnings_, {}); }

void Stopping::answer(int signal) const {
  const double seconds = stop_seconds_;
  std::string text =
      fmt::format("transformer3d: asked to stop by {}: stops after this step", strsignal(signal));
  if (seconds > 0)
    text += fmt::format(" with a checkpoint, in about {:.0f} s", std::max(1.0, seconds));
  std::fputs((text + "\n").c_str(), stderr);
}

std::string Stopping::reason(unsigned stop) {
  // What the user asks for stands before what would have come anyway: it decides goes_on().
  if ((stop & kReplicasDiffer) != 0)
    return "stopped because replicas differ and most are not alike";
  if ((stop & kStopFile) != 0) return "asked to stop by the file stop_now";
  if ((stop & (kTimeNear | kInterrupted)) == kTimeNear)
    return "stopped because the time limit is near";
  return "asked to stop by a signal";
}

bool Stopping::goes_on(unsigned stop) { return (stop & (kInterrupted | kStopFile)) == 0; }

}  // namespace t3d
