#include "io/lock/run_lock.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "io/lock/lock_file.hpp"

namespace t3d {
namespace {

constexpr std::chrono::duration<double> kRenewal{kRenewalSeconds};
constexpr std::chrono::milliseconds kLook{500};
// A process that is there and gives no sign of life is suspended, or its file system hangs. It is
// waited for a while, in case it is about to end.
constexpr double kPatienceSeconds = 20;
// Half of what anybody who takes over by silence has to observe.
constexpr double kGoneSeconds = kLockExpiresSeconds / 2;

/// Goes on while the host sleeps, unlike steady_clock: others do not sleep.
double seconds_since_boot() {
  struct timespec now {};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Waits until the lock is free or its owner gives a sign of life.
void take(LockFile& file, const std::string& advice,
          const std::function<void(const std::string&)>& waiting) {
  std::optional<LockFile::Holder> before;
  const LockOwner here = this_process("");
  while (const std::optional<LockFile::Holder> now = file.try_take()) {
    const bool same =
        before && before->owner && now->owner && before->owner->token == now->owner->token;
    if (same && before->sign != now->sign)
      throw_error(ExitCode::unavailable, "{} is held by {}, which is alive: {}", file.path(),
                  describe(*now), advice);
    if (now->silent_seconds > kPatienceSeconds && now->owner && is_alive(*now->owner, here))
      throw_error(ExitCode::unavailable,
                  "{} is held by {}, which is there but gives no sign of life (suspended?): {}",
                  file.path(), describe(*now), advice);
    waiting(fmt::format(
        "{} is held by {}; last sign of life {:.0f} s ago or more, expires after {:.0f} s without",
        file.path(), describe(*now), now->silent_seconds, kLockExpiresSeconds));
    before = now;
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace

struct RunLock::Held {
  Held(const std::string& folder, const LockOwner& owner) : file(folder, owner) {}
  LockFile file;
  double seen = seconds_since_boot();  // when it was known to be ours
  bool told = false;                   // of the trouble that it is in
};

RunLock::RunLock(const std::vector<std::string>& folders, const std::string& run,
                 const std::function<void(const std::string&)>& waiting,
                 const std::string& advice) {
  const LockOwner owner = this_process(run);
  lease_.token = owner.token;
  std::set<std::filesystem::path> taken;
  for (const std::string& folder : folders) {
    if (!taken.insert(std::filesystem::canonical(folder)).second) continue;
    auto held = std::make_unique<Held>(folder, owner);
    take(held->file, advice, [&](const std::string& text) {
      for (const auto& other : files_) renew(*other);
      waiting(text);
    });
    held->seen = seconds_since_boot();
    lease_.files.push_back(held->file.path());
    files_.push_back(std::move(held));
  }
  // The thread must take no signal: those that stop the run are waited for elsewhere.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    heart_ = std::thread([this] { renew_for_ever(); });
  } catch (const std::exception& error) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw_error(ExitCode::unavailable, "cannot start a thread: {}", error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

RunLock::~RunLock() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  heart_.join();
}

void RunLock::renew_for_ever() noexcept {
  std::unique_lock<std::mutex> guard(mutex_);
  while (!wake_.wait_for(guard, kRenewal, [this] { return ending_; }))
    for (const auto& held : files_) renew(*held);
}

void RunLock::renew(Held& held) noexcept {
  std::string note;
  LockFile::Standing standing = held.file.renew(note);
  const double now = seconds_since_boot(), unseen = now - held.seen;
  if (standing == LockFile::Standing::gone && unseen < kGoneSeconds && held.file.take_again(note))
    standing = LockFile::Standing::ours;
  switch (standing) {
    case LockFile::Standing::ours:
      held.seen = now;
      if (note.empty()) held.told = false;
      return warn(held, note);
    case LockFile::Standing::taken: lost_ = true; return;
    case LockFile::Standing::gone:
      if (unseen >= kGoneSeconds) lost_ = true;
      return warn(held, note);
    case LockFile::Standing::unclear:
      // A file system may lose sight of a file for a moment.
      if (unseen < 3 * kRenewalSeconds) return;
      return warn(held, note.empty() ? held.file.path() + " holds no record any more" : note);
  }
}

/// Once for each time that there is something.
void RunLock::warn(Held& held, const std::string& text) noexcept {
  if (text.empty() || held.told) return;
  held.told = true;
  try {
    const std::lock_guard<std::mutex> guard(warnings_mutex_);
    warnings_.push_back(text);
  } catch (const std::exception&) {
    return;
  }
}

std::vector<std::string> RunLock::take_warnings() {
  const std::lock_guard<std::mutex> guard(warnings_mutex_);
  return std::exchange(warnings_, {});
}

void RunLock::set_run(const std::string& id) {
  const std::lock_guard<std::mutex> guard(mutex_);
  for (const auto& held : files_) held->file.set_run(id);
}

}  // namespace t3d
