#include "io/lock/run_lock.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <set>

#include "core/error.hpp"
#include "io/lock/lock_file.hpp"

namespace t3d {
namespace {

constexpr std::chrono::seconds kRenewal{2};
constexpr std::chrono::milliseconds kLook{500};

/// Waits until the lock is free or its owner gives a sign of life.
void take(LockFile& file, const std::string& advice,
          const std::function<void(const std::string&)>& waiting) {
  std::optional<LockFile::Holder> before;
  while (const std::optional<LockFile::Holder> now = file.try_take()) {
    const bool same =
        before && before->owner && now->owner && before->owner->token == now->owner->token;
    if (same && before->renewed != now->renewed)
      throw_error(ExitCode::unavailable, "{} is held by {}, which is alive: {}", file.path(),
                  describe(*now), advice);
    waiting(fmt::format("{} is held by {}; last sign of life {:.0f} s ago, expires after {:.0f} s",
                        file.path(), describe(*now), now->age_seconds, kLockExpiresSeconds));
    before = now;
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace

RunLock::RunLock(const std::vector<std::string>& folders, const std::string& run,
                 const std::function<void(const std::string&)>& waiting,
                 const std::string& advice) {
  const LockOwner owner = this_process(run);
  lease_.token = owner.token;
  std::set<std::filesystem::path> taken;
  for (const std::string& folder : folders) {
    if (!taken.insert(std::filesystem::canonical(folder)).second) continue;
    auto file = std::make_unique<LockFile>(folder, owner);
    take(*file, advice, [&](const std::string& text) {
      for (const auto& held : files_) held->renew();
      waiting(text);
    });
    lease_.files.push_back(file->path());
    files_.push_back(std::move(file));
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
  bool gone_before = false;  // a file system may lose sight of a file for a moment
  while (!wake_.wait_for(guard, kRenewal, [this] { return ending_; })) {
    bool gone = false;
    for (const auto& file : files_) {
      file->renew();
      const LockFile::Standing standing = file->standing();
      if (standing == LockFile::Standing::taken) lost_ = true;
      gone = gone || standing == LockFile::Standing::gone;
    }
    if (gone && gone_before) lost_ = true;
    gone_before = gone;
  }
}

void RunLock::set_run(const std::string& id) {
  const std::lock_guard<std::mutex> guard(mutex_);
  for (const auto& file : files_) file->set_run(id);
}

}  // namespace t3d
