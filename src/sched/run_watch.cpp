#include "sched/run_watch.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "core/phase_clock.hpp"
#include "core/run_event.hpp"

namespace t3d {
namespace {

constexpr std::chrono::seconds kLook{1};
constexpr double kBetweenQuestions = 60;  // seconds: limits may be changed while the job runs

constexpr std::array<std::pair<const char*, unsigned>, 3> kFiles{
    {{"stop_now", kStopFile}, {"checkpoint_now", kCheckpointDue}, {"report_now", kReportDue}}};

}  // namespace

RunWatch::RunWatch(Options options) : options_(std::move(options)), start_(PhaseClock::now()) {
  look_for_files(true);
  ask_slurm();
  if (const auto known = job(); known && !known->partition.empty())
    if (const auto text = options_.scontrol({"-o", "show", "partition", known->partition}))
      grace_ = grace_seconds_of(*text);
  thread_ = std::thread(&RunWatch::watch, this);
}

RunWatch::~RunWatch() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

unsigned RunWatch::take_wishes(const Pace& pace) {
  const std::optional<double> left = left_seconds();
  const double life = PhaseClock::now() - start_ + left.value_or(0);
  const bool late = left && *left < pace.reserve_seconds(life);
  return file_wishes_.exchange(0) | (late ? kTimeNear : kNoFlag);
}

std::optional<double> RunWatch::left_seconds() const {
  const double now = PhaseClock::now();
  std::optional<double> left;
  if (options_.hours > 0) left = start_ + 3600 * options_.hours - now;
  const std::lock_guard lock(mutex_);
  if (slurm_end_) left = std::min(left.value_or(*slurm_end_ - now), *slurm_end_ - now);
  return left;
}

std::optional<SlurmJob> RunWatch::job() const {
  const std::lock_guard lock(mutex_);
  return job_;
}

void RunWatch::watch() noexcept {
  double asked = PhaseClock::now();
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kLook, [this] { return ending_; })) {
    lock.unlock();
    look_for_files(false);
    if (PhaseClock::now() - asked > kBetweenQuestions) {
      ask_slurm();
      asked = PhaseClock::now();
    }
    lock.lock();
  }
}

void RunWatch::look_for_files(bool begins) {
  for (const auto& [name, wish] : kFiles)
    if (unlink((options_.dir + "/" + name).c_str()) == 0 && !begins) file_wishes_ |= wish;
}

// Slurm that does not answer, or knows no limit, leaves what was known.
void RunWatch::ask_slurm() {
  if (options_.slurm_job.empty()) return;
  const auto text = options_.scontrol({"-o", "show", "job", options_.slurm_job});
  if (!text) return;
  const std::optional<SlurmJob> job = slurm_job_of(*text);
  if (!job) return;
  const std::lock_guard lock(mutex_);
  job_ = job;
  slurm_end_.reset();
  if (job->left_seconds) slurm_end_ = PhaseClock::now() + *job->left_seconds;
}

}  // namespace t3d
