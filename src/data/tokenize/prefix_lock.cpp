#include "data/tokenize/prefix_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "device/host_limits.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

constexpr std::string_view kOwner = "process ";

/// "process 17 on n3", or what else stands in the file; empty where nothing does.
std::string owner_in(const std::string& path) {
  try {
    const std::string text = read_record_file(path);
    return text.substr(0, text.find('\n'));
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

PrefixLock::PrefixLock(const std::string& prefix) : path_(prefix + ".parts.lock") {
  constexpr int kTries = 100;  // others may remove it between two looks
  make_folder(folder_of(path_));
  for (int n = 0; n < kTries && !take(prefix); ++n) {
  }
  if (fd_ < 0) throw_error(ExitCode::io, "{} cannot be locked: its file keeps changing", path_);
  write_owner();
}

PrefixLock::~PrefixLock() {
  if (is_named()) ::unlink(path_.c_str());
  ::close(fd_);
}

bool PrefixLock::is_named() const {
  struct stat held {
  }, named{};
  return ::fstat(fd_, &held) == 0 && ::lstat(path_.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

bool PrefixLock::take(const std::string& prefix) {
  constexpr mode_t kMode = 0644;
  constexpr int kFlags = O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW;
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | kFlags, kMode);
  if (fd_ < 0 && errno == EACCES)  // left by another user: enough for the lock
    fd_ = ::open(path_.c_str(), O_RDONLY | kFlags);
  if (fd_ < 0) throw_error(ExitCode::io, "cannot write {}: {}", path_, std::strerror(errno));
  const std::string owner = owner_in(path_);
  if (!owner.empty() && !owner.starts_with(kOwner)) {
    ::close(fd_);
    throw_error(ExitCode::config, "{} is a file of something else; name other token files by -o",
                path_);
  }
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(fd_);
    throw_error(ExitCode::unavailable,
                "{} is writing token files of this name ({}); wait until it ends, or name other "
                "ones by -o. If it has ended, remove {}",
                owner.empty() ? "another process" : owner, prefix, path_);
  }
  if (is_named()) return true;
  ::close(std::exchange(fd_, -1));
  return false;
}

// For the other's message alone: the lock holds without it.
void PrefixLock::write_owner() const {
  const std::string text = fmt::format("{}{} on {}\n", kOwner, ::getpid(), host_name());
  if (::ftruncate(fd_, 0) != 0) return;
  [[maybe_unused]] const ssize_t written = ::pwrite(fd_, text.data(), text.size(), 0);
}

}  // namespace t3d
