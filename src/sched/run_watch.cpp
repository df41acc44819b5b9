#include "sched/run_watch.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ctime>
#include <utility>

#include "core/phase_clock.hpp"
#include "core/run_event.hpp"
#include "device/process_status.hpp"
#include "sched/requeue.hpp"

namespace t3d {
namespace {

constexpr std::chrono::seconds kLook{1};
constexpr double kBetweenQuestions = 60;  // seconds: limits may be changed while the job runs
constexpr double kStandstill = 5;         // so late a thread does not wake on a node that is alive

constexpr std::array<std::pair<const char*, unsigned>, 3> kFiles{
    {{"stop_now", kStopFile}, {"checkpoint_now", kCheckpointDue}, {"report_now", kReportDue}}};

std::string text_of(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  if (seconds < 90 * 60) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{:.0f} h", seconds / 3600);
  return fmt::format("{:.0f} days", seconds / 86400);
}

/// `steps` were done in `seconds`.
std::string comment_text(const RunWatch::Progress& progress, double seconds, index_t steps) {
  std::string text = fmt::format("step {}/{}", progress.step, progress.steps);
  if (std::isfinite(progress.loss)) text += fmt::format(", loss {:.3g}", progress.loss);
  const auto left = static_cast<double>(progress.steps - progress.step);
  if (steps > 0) text += ", ends in " + text_of(left * seconds / static_cast<double>(steps));
  return text;
}

}  // namespace

RunWatch::RunWatch(Options options)
    : options_(std::move(options)),
      start_(PhaseClock::now()),
      begun_(static_cast<double>(std::time(nullptr)) - process_age_seconds() - 1) {
  look_for_files(true);
  if (options_.slurm_end > 0)
    slurm_end_ = start_ + options_.slurm_end - static_cast<double>(std::time(nullptr));
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

unsigned RunWatch::take_wishes(const Pace& pace, unsigned mask) {
  const std::optional<double> left = left_seconds();
  const double life = PhaseClock::now() - start_ + left.value_or(0);
  const bool late = left && *left < pace.reserve_seconds(life);
  return mask & (file_wishes_.fetch_and(~mask) | (late ? kTimeNear : kNoFlag));
}

std::optional<double> RunWatch::left_seconds() const {
  const double now = PhaseClock::now();
  std::optional<double> left;
  if (options_.hours > 0) left = start_ + 3600 * options_.hours - now;
  const std::lock_guard lock(mutex_);
  if (!slurm_end_) return left;
  const double of_slurm = *slurm_end_ + stood_still(now) - now;
  return std::min(left.value_or(of_slurm), of_slurm);
}

void RunWatch::set_progress(const Progress& progress) {
  const std::lock_guard lock(mutex_);
  progress_ = progress;
  if (first_step_ < 0) {
    first_step_ = progress.step;
    first_time_ = PhaseClock::now();
  }
}

// A job whose owner has given it a comment keeps that. Sites may not let a job change its own.
void RunWatch::comment() {
  constexpr int kRefusals = 3;
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    const bool ours =
        job_ && (job_->comment.empty() || job_->comment == "step" || job_->comment == "(null)");
    if (!ours || !progress_ || refused_ >= kRefusals) return;
    text = comment_text(*progress_, PhaseClock::now() - first_time_, progress_->step - first_step_);
  }
  commented_ = PhaseClock::now();
  const bool taken =
      options_.scontrol({"update", "JobId=" + options_.slurm_job, "Comment=" + text}).has_value();
  refused_ = taken ? 0 : refused_ + 1;
}

std::optional<SlurmJob> RunWatch::job() const {
  const std::lock_guard lock(mutex_);
  return job_;
}

// While a job is suspended (scontrol suspend) its processes stand still and its time does not pass,
// but the clock does: a thread that sleeps for a second and wakes much later tells of it. The end
// moves by so much, until Slurm, which is asked at once, says what is true.
double RunWatch::stood_still(double now) const {
  const double late = sleeps_since_ > 0 ? now - sleeps_since_ - 1 : 0;
  return late > kStandstill ? late : 0;
}

void RunWatch::watch() noexcept {
  double asked = PhaseClock::now();
  std::unique_lock lock(mutex_);
  while (true) {
    sleeps_since_ = PhaseClock::now();
    if (wake_.wait_for(lock, kLook, [this] { return ending_; })) return;
    const double still = stood_still(PhaseClock::now());
    sleeps_since_ = 0;
    if (slurm_end_) *slurm_end_ += still;
    lock.unlock();
    look_for_files(false);
    if (still > 0 || PhaseClock::now() - asked > kBetweenQuestions) {
      ask_slurm();
      asked = PhaseClock::now();
    }
    if (PhaseClock::now() - commented_ > kBetweenQuestions) comment();
    lock.lock();
  }
}

// What cannot be removed (a folder, another user's file) asks once, too.
void RunWatch::look_for_files(bool begins) {
  for (std::size_t at = 0; at < kFiles.size(); ++at) {
    const auto& [name, wish] = kFiles[at];
    const std::string path = options_.dir + "/" + name;
    struct stat entry {};
    if (lstat(path.c_str(), &entry) != 0) {
      seen_[at] = false;
      continue;
    }
    const bool old = begins && static_cast<double>(entry.st_mtime) < begun_;
    const bool removed = unlink(path.c_str()) == 0;
    if (!old && !seen_[at]) file_wishes_ |= wish;
    seen_[at] = !removed;
  }
}

// Slurm that does not answer, or with something else than a limit, leaves what was known.
void RunWatch::ask_slurm() {
  if (options_.slurm_job.empty()) return;
  const auto text = options_.scontrol({"-o", "show", "job", options_.slurm_job});
  if (!text) return;
  const std::optional<SlurmJob> job = slurm_job_of(*text);
  if (!job) return;
  hear_restarts(job->restarts);
  const std::lock_guard lock(mutex_);
  job_ = job;
  if (job->unlimited) slurm_end_.reset();
  if (job->left_seconds) slurm_end_ = PhaseClock::now() + *job->left_seconds;
}

}  // namespace t3d
