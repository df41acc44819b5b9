#include "io/lock/lock_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "core/error.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

constexpr mode_t kMode = 0644;

[[noreturn]] void fail(const char* verb, const std::string& path) {
  const int reason = errno;
  throw_error(ExitCode::io, "cannot {} {}: {}", verb, path, std::strerror(reason));
}

std::int64_t change_of(int fd, const std::string& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) fail("ask for the time of", path);
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

/// What the file system takes for now: the time that it gives to a file of ours.
std::int64_t now_by(int fd, const std::string& path) {
  if (::futimens(fd, nullptr) != 0) fail("set the time of", path);
  return change_of(fd, path);
}

double seconds_between(std::int64_t from, std::int64_t to) {
  return static_cast<double>(to - from) * 1e-9;
}

std::string token_of(const LockFile::Holder& holder) {
  return holder.owner ? holder.owner->token : "unknown";
}

/// The right to replace or remove the lock with one token, for a moment.
class Claim {
 public:
  Claim(const std::string& lock, const std::string& token)
      : path_(lock + ".after-" + token),
        fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode)),
        reason_(errno) {}
  ~Claim() {
    if (fd_ < 0) return;
    ::unlink(path_.c_str());
    ::close(fd_);
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  [[nodiscard]] bool granted() const { return fd_ >= 0; }
  [[nodiscard]] bool taken() const { return fd_ < 0 && reason_ == EEXIST; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_;
  int reason_;
};

}  // namespace

std::optional<LockFile::Holder> read_lock(const std::string& path) {
  // NFS answers ESTALE while a file is replaced: that says nothing of the lock.
  constexpr int kTries = 10;
  int fd = -1;
  for (int tries = 0; tries < kTries; ++tries) {
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 || errno != ESTALE) break;
  }
  if (fd < 0 && errno == ENOENT) return std::nullopt;
  if (fd < 0) fail("open", path);
  std::array<char, 8192> text{};
  const ssize_t length = ::pread(fd, text.data(), text.size(), 0);
  const int reason = errno;
  LockFile::Holder holder;
  struct stat status {};
  const bool known = ::fstat(fd, &status) == 0;
  ::close(fd);
  errno = reason;
  if (length < 0 || !known) fail("read", path);
  holder.renewed = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  holder.owner = parse_owner(std::string(text.data(), static_cast<std::size_t>(length)));
  return holder;
}

std::string describe(const LockFile::Holder& holder) {
  return holder.owner ? describe(*holder.owner) : "an owner that cannot be read";
}

LockFile::LockFile(const std::string& folder, const LockOwner& owner, const std::string& name)
    : path_(folder + "/" + name),
      draft_(path_ + "." + owner.token),
      draft_name_(draft_),
      owner_(owner) {
  fd_ = ::open(draft_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
  if (fd_ < 0) fail("create", draft_);
  const std::string record = format_owner(owner_);
  const ssize_t written = ::pwrite(fd_, record.data(), record.size(), 0);
  if (written != std::ssize(record) || ::fsync(fd_) != 0) {
    const int reason = written >= 0 && written < std::ssize(record) ? ENOSPC : errno;
    drop_draft();
    ::close(fd_);
    errno = reason;
    fail("write", draft_);
  }
}

LockFile::~LockFile() {
  if (held_)
    give_back();
  else
    drop_draft();
  ::close(fd_);
}

std::optional<LockFile::Holder> LockFile::try_take() {
  // Given back in between, again and again: rather a name with nothing to read behind it.
  constexpr int kTries = 100;
  for (int tries = 0; tries < kTries; ++tries) {
    if (create_lock()) {
      drop_leftovers();
      return std::nullopt;
    }
    std::optional<Holder> holder = read_lock(path_);
    if (!holder) continue;  // given back in between
    holder->age_seconds = seconds_between(holder->renewed, now_by(fd_, draft_));
    const bool ended = holder->owner && has_ended(*holder->owner, owner_);
    if (!ended && holder->age_seconds < kLockExpiresSeconds) return holder;
    if (take_over(*holder)) return std::nullopt;
    return holder;
  }
  throw_error(ExitCode::io, "{} is there and cannot be read", path_);
}

/// The lock with its whole record at once; false when there is one already.
bool LockFile::create_lock() {
  struct stat status {};
  const bool linked = ::link(draft_.c_str(), path_.c_str()) == 0;
  const int reason = errno;
  // An NFS server may have done it although its answer was lost.
  if (linked || (::fstat(fd_, &status) == 0 && status.st_nlink > 1)) {
    held_ = true;
    drop_draft();
    return true;
  }
  if (reason == EEXIST) return false;
  // No hard links here: an empty file takes the name, then the draft takes its place.
  const int place = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
  if (place < 0 && errno == EEXIST) return false;
  if (place < 0) fail("create", path_);
  ::close(place);
  if (::rename(draft_.c_str(), path_.c_str()) != 0) fail("rename", draft_);
  held_ = true;
  return true;
}

/// False when somebody else was faster or the owner gave a sign of life.
bool LockFile::take_over(const Holder& holder) {
  const Claim claim(path_, token_of(holder));
  if (claim.taken()) {
    const std::optional<Holder> other = read_lock(claim.path());
    if (other && seconds_between(other->renewed, now_by(fd_, draft_)) > kLockExpiresSeconds)
      ::unlink(claim.path().c_str());  // of a process that died while it held the claim
    return false;
  }
  if (!claim.granted()) fail("create", claim.path());
  const std::optional<Holder> again = read_lock(path_);
  if (!again || token_of(*again) != token_of(holder) || again->renewed != holder.renewed)
    return false;
  if (::rename(draft_.c_str(), path_.c_str()) != 0) fail("rename", draft_);
  held_ = true;
  drop_leftovers();
  return true;
}

void LockFile::renew() const noexcept { ::futimens(fd_, nullptr); }

LockFile::Standing LockFile::standing() const noexcept {
  try {
    const std::optional<Holder> now = holder();
    if (!now || !now->owner) return Standing::gone;
    return now->owner->token == owner_.token ? Standing::ours : Standing::taken;
  } catch (const std::exception&) {
    return Standing::unknown;
  }
}

std::optional<LockFile::Holder> LockFile::holder() const { return read_lock(path_); }

void LockFile::set_run(const std::string& run) noexcept {
  try {
    owner_.run = run;
    const std::string record = format_owner(owner_);
    // Only for the reader's information: the old record is as good as a lock.
    static_cast<void>(::pwrite(fd_, record.data(), record.size(), 0));
  } catch (const std::exception&) {
    return;
  }
}

void LockFile::drop_draft() noexcept { ::unlink(draft_.c_str()); }

/// Drafts and claims of processes that were killed in the moment between, or while they waited.
void LockFile::drop_leftovers() noexcept {
  try {
    const std::int64_t now = now_by(fd_, path_);
    const std::filesystem::path lock(path_), folder = lock.parent_path();
    for (const std::string& name : list_folder(folder.string())) {
      if (!name.starts_with(lock.filename().string() + ".")) continue;
      const std::string path = (folder / name).string();
      const std::optional<Holder> other = read_lock(path);
      if (!other) continue;
      const bool ended = other->owner && has_ended(*other->owner, owner_);
      if (ended || seconds_between(other->renewed, now) > kLockExpiresSeconds)
        ::unlink(path.c_str());
    }
  } catch (const std::exception&) {
    return;
  }
}

/// Somebody who looks at a lock holds its claim for a moment: some tries. A lock that stays is
/// taken over as that of an ended process.
void LockFile::give_back() noexcept {
  try {
    for (int tries = 0; tries < 100; ++tries) {
      const Claim claim(path_, owner_.token);
      if (claim.granted()) {
        if (standing() == Standing::ours) ::unlink(path_.c_str());
        return;
      }
      if (!claim.taken()) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  } catch (const std::exception&) {
    return;
  }
}

}  // namespace t3d
