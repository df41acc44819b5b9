#include "io/lock/run_lock.hpp"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "io/lock/lock_file.hpp"

namespace t3d {
namespace {

constexpr std::chrono::duration<double> kRenewal{kRenewalSeconds};
constexpr std::chrono::milliseconds kLook{500}, kMoment{1000};
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
  bool taken = false;                  // by somebody else: it is left alone from then on
  bool told = false;                   // of the trouble that it is in
};

/// The thread owns it too: one that hangs in a file system's call outlives the lock.
struct RunLock::State {
  std::vector<std::unique_ptr<Held>> files;  // the thread's, once there is one
  std::atomic<bool> lost{false};
  std::mutex mutex;  // of those below; held for no longer than a moment: the steps wait for it
  std::condition_variable changed;
  std::vector<std::string> warnings;
  std::optional<std::string> run;  // to be written into the locks
  bool ending = false, ended = false;

  void renew_for_ever() noexcept;
  void renew(Held& held) noexcept;
  void warn(Held& held, const std::string& text) noexcept;
};

RunLock::RunLock(const std::vector<std::string>& folders, const std::string& run,
                 const std::function<void(const std::string&)>& waiting, const std::string& advice)
    : state_(std::make_shared<State>()) {
  const LockOwner owner = this_process(run);
  lease_.token = owner.token;
  std::set<std::filesystem::path> taken;
  for (const std::string& folder : folders) {
    if (!taken.insert(std::filesystem::canonical(folder)).second) continue;
    auto held = std::make_unique<Held>(folder, owner);
    take(held->file, advice, [&](const std::string& text) {
      for (const auto& other : state_->files) state_->renew(*other);
      waiting(text);
    });
    held->seen = seconds_since_boot();
    lease_.files.push_back(held->file.path());
    state_->files.push_back(std::move(held));
  }
  for (const auto& held : state_->files) held->file.leave_trace();
  // The thread must take no signal: those that stop the run are waited for elsewhere.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    std::thread([state = state_] { state->renew_for_ever(); }).detach();
  } catch (const std::exception& error) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw_error(ExitCode::unavailable, "cannot start a thread: {}", error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

RunLock::~RunLock() {
  std::unique_lock guard(state_->mutex);
  state_->ending = true;
  state_->changed.notify_all();
  state_->changed.wait_for(guard, std::chrono::duration<double>(kLastSeconds),
                           [this] { return state_->ended; });
}

void RunLock::State::renew_for_ever() noexcept {
  std::unique_lock guard(mutex);
  while (!changed.wait_for(guard, kRenewal, [this] { return ending || run; }) || !ending) {
    const std::optional<std::string> id = run;
    guard.unlock();
    for (const auto& held : files) {
      if (id) held->file.set_run(*id);
      renew(*held);
    }
    guard.lock();
    if (run == id) run.reset();
    changed.notify_all();
  }
  guard.unlock();
  files.clear();  // gives them back
  guard.lock();
  ended = true;
  changed.notify_all();
}

void RunLock::State::renew(Held& held) noexcept {
  if (held.taken) return;
  std::string note;
  LockFile::Standing standing = held.file.renew(note);
  const double now = seconds_since_boot(), unseen = now - held.seen;
  if (standing == LockFile::Standing::gone && unseen < kGoneSeconds)
    standing = held.file.take_again(note);
  switch (standing) {
    case LockFile::Standing::ours:
      held.seen = now;
      if (note.empty()) held.told = false;
      return warn(held, note);
    case LockFile::Standing::taken:
      lost = held.taken = true;
      held.told = false;
      return warn(held, note);
    case LockFile::Standing::gone:
      if (unseen >= kGoneSeconds) lost = true;
      return warn(held, note);
    case LockFile::Standing::unclear:
      // A file system may lose sight of a file for a moment.
      if (unseen < 3 * kRenewalSeconds) return;
      return warn(held, note.empty() ? held.file.path() + " holds no record any more" : note);
  }
}

/// Once for each time that there is something.
void RunLock::State::warn(Held& held, const std::string& text) noexcept {
  if (text.empty() || held.told) return;
  held.told = true;
  try {
    const std::lock_guard guard(mutex);
    warnings.push_back(text);
  } catch (const std::exception&) {
    return;
  }
}

bool RunLock::lost() const { return state_->lost; }

std::vector<std::string> RunLock::take_warnings() {
  const std::lock_guard guard(state_->mutex);
  return std::exchange(state_->warnings, {});
}

void RunLock::set_run(const std::string& id) {
  std::unique_lock guard(state_->mutex);
  state_->run = id;
  state_->changed.notify_all();
  state_->changed.wait_for(guard, kMoment, [this] { return !state_->run; });
}

}  // namespace t3d
