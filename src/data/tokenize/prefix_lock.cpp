#include "data/tokenize/prefix_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "device/host_limits.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

/// "process 17 on node n3", where the file says it.
std::string owner_in(const std::string& path) {
  try {
    const std::string text = read_record_file(path);
    if (!text.empty()) return text.substr(0, text.find('\n'));
  } catch (const Error&) {
  }
  return "another process";
}

}  // namespace

PrefixLock::PrefixLock(const std::string& prefix) : path_(prefix + ".lock") {
  make_folder(folder_of(path_));
  while (!take(prefix)) {
  }
  write_owner();
}

PrefixLock::~PrefixLock() {
  ::unlink(path_.c_str());
  ::close(fd_);
}

bool PrefixLock::take(const std::string& prefix) {
  constexpr mode_t kMode = 0644;
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, kMode);
  if (fd_ < 0) throw_error(ExitCode::io, "cannot write {}: {}", path_, std::strerror(errno));
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(fd_);
    throw_error(ExitCode::unavailable,
                "{} is writing token files of this name ({}); wait until it ends, or name other "
                "ones by -o",
                owner_in(path_), prefix);
  }
  struct stat held {
  }, named{};
  const bool same = ::fstat(fd_, &held) == 0 && ::stat(path_.c_str(), &named) == 0 &&
                    held.st_ino == named.st_ino && held.st_dev == named.st_dev;
  if (!same) ::close(fd_);
  return same;
}

// For the other's message alone: the lock holds without it.
void PrefixLock::write_owner() const {
  const std::string text = fmt::format("process {} on {}\n", ::getpid(), host_name());
  if (::ftruncate(fd_, 0) != 0) return;
  [[maybe_unused]] const ssize_t written = ::pwrite(fd_, text.data(), text.size(), 0);
}

}  // namespace t3d
