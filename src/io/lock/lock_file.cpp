#include "io/lock/lock_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

constexpr mode_t kMode = 0644;

[[noreturn]] void fail(const char* verb, const std::string& path) {
  const int reason = errno;
  throw_error(ExitCode::io, "cannot {} {}: {}", verb, path, std::strerror(reason));
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
  holder.owner = parse_owner(std::string(text.data(), static_cast<std::size_t>(length)));
  LifeSign& sign = holder.sign;
  sign.renewed = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  sign.file = status.st_ino;
  sign.token = token_of(holder);
  if (holder.owner) sign.beats = holder.owner->beats;
  return holder;
}

std::string describe(const LockFile::Holder& holder) {
  return holder.owner ? describe(*holder.owner) : "an owner that cannot be read";
}

LockFile::LockFile(const std::string& folder, const LockOwner& owner, const std::string& name,
                   double expires_seconds)
    : path_(folder + "/" + name),
      draft_(path_ + "." + owner.token),
      trace_(folder + "/." + name + ".last"),
      draft_name_(draft_),
      owner_(owner),
      expires_seconds_(expires_seconds),
      fd_(open_draft()) {}

int LockFile::open_draft() const {
  const int fd = ::open(draft_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
  if (fd < 0) fail("create", draft_);
  const std::string record = format_owner(owner_);
  const ssize_t written = ::pwrite(fd, record.data(), record.size(), 0);
  if (written != std::ssize(record) || ::fsync(fd) != 0) {
    const int reason = written >= 0 && written < std::ssize(record) ? ENOSPC : errno;
    ::unlink(draft_.c_str());
    ::close(fd);
    errno = reason;
    fail("write", draft_);
  }
  return fd;
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
      list_leftovers();
      return std::nullopt;
    }
    ++owner_.beats;  // who comes to this lock meanwhile sees that the draft is not left behind
    static_cast<void>(write_record());
    std::optional<Holder> holder = read_lock(path_);
    if (!holder) continue;  // given back in between
    holder->silent_seconds = silence_.look(holder->sign);
    const bool ended = holder->owner && has_ended(*holder->owner, owner_);
    const bool alive = holder->owner && is_alive(*holder->owner, owner_);
    if (!ended && (alive || holder->silent_seconds < expires_seconds_)) return holder;
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
    if (other && claim_silence_.look(other->sign) >= expires_seconds_)
      ::unlink(claim.path().c_str());  // of a process that died while it held the claim
    return false;
  }
  if (!claim.granted()) fail("create", claim.path());
  const std::optional<Holder> again = read_lock(path_);
  if (!again || again->sign != holder.sign) return false;
  if (::rename(draft_.c_str(), path_.c_str()) != 0) fail("rename", draft_);
  held_ = true;
  list_leftovers();
  return true;
}

/// Without room for it, somebody who comes and goes while this lock is removed is not noticed.
void LockFile::leave_trace() noexcept {
  try {
    // Renamed to its name: whole or not there, and never written through a link that stands there.
    const std::string draft = trace_ + "." + owner_.token;
    const int fd =
        ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode);
    const std::string record = format_owner(owner_);
    if (fd >= 0) {
      const bool whole = ::pwrite(fd, record.data(), record.size(), 0) == std::ssize(record);
      ::close(fd);
      if (!whole || ::rename(draft.c_str(), trace_.c_str()) != 0) ::unlink(draft.c_str());
    }
    if (const std::optional<LockOwner> last = last_taker()) last_token_ = last->token;
  } catch (const std::exception&) {
    return;
  }
}

/// Nothing where that is not known.
std::optional<LockOwner> LockFile::last_taker() const noexcept {
  try {
    const std::optional<Holder> last = read_lock(trace_);
    return last ? last->owner : std::nullopt;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// The number of renewals shows where times of files do not; the time shows it to earlier versions
/// of the program, and makes NFS send both.
bool LockFile::write_record() const noexcept {
  try {
    const std::string record = format_owner(owner_);
    return ::pwrite(fd_, record.data(), record.size(), 0) == std::ssize(record) &&
           ::futimens(fd_, nullptr) == 0;
  } catch (const std::exception&) {
    return false;
  }
}

/// Only a record of ours is written over: what others rename to the path is another file.
bool LockFile::reopen() {
  const int fd = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  std::array<char, 8192> text{};
  const ssize_t length = ::pread(fd, text.data(), text.size(), 0);
  const auto owner =
      parse_owner(std::string(text.data(), static_cast<std::size_t>(std::max<ssize_t>(0, length))));
  if (!owner || owner->token != owner_.token) {
    ::close(fd);
    return false;
  }
  ::close(std::exchange(fd_, fd));
  return true;
}

LockFile::Standing LockFile::renew(std::string& note) noexcept {
  try {
    if (!leftovers_.empty()) drop_leftovers();
    ++owner_.beats;
    const bool written = write_record();
    const int reason = errno;
    const std::optional<Holder> seen = holder();
    if (!seen) return Standing::gone;
    if (!seen->owner) return Standing::unclear;
    if (seen->owner->token != owner_.token) return Standing::taken;
    if (written && seen->owner->beats == owner_.beats) return Standing::ours;
    const std::string what =
        written ? "what is written into it does not show" : std::strerror(reason);
    if (reopen() && write_record()) {
      note = fmt::format("{} could not be renewed ({}); it was opened again", path_, what);
      return Standing::ours;
    }
    note = fmt::format("{} cannot be renewed: {}", path_, what);
  } catch (const std::exception& error) {
    note = fmt::format("{} cannot be renewed: {}", path_, error.what());
  }
  return Standing::unclear;
}

LockFile::Standing LockFile::take_again(std::string& note) noexcept {
  const int before = fd_;
  Standing standing = Standing::gone;
  try {
    const std::optional<LockOwner> last = last_taker();
    if (last && last->token != last_token_ && last->token != owner_.token) {
      note = fmt::format("{} was removed, and {} has had it since", path_, describe(*last));
      return Standing::taken;
    }
    drop_draft();  // of a try that failed
    fd_ = open_draft();
    if (create_lock()) {
      ::close(before);
      note = fmt::format("{} was removed by somebody; this job has taken it again", path_);
      return Standing::ours;
    }
    // There is one after all: ours, which the file system had lost sight of, or another's.
    standing = this->standing();
    if (standing == Standing::ours) standing = Standing::unclear;  // the next renewal writes it
    if (standing == Standing::taken)
      note = fmt::format("{} was removed, and somebody else has it now", path_);
  } catch (const std::exception& error) {
    note = fmt::format("{} was removed, and cannot be taken again: {}", path_, error.what());
  }
  drop_draft();
  if (fd_ != before) ::close(std::exchange(fd_, before));
  return standing;
}

LockFile::Standing LockFile::standing() const noexcept {
  try {
    const std::optional<Holder> now = holder();
    if (!now) return Standing::gone;
    if (!now->owner) return Standing::unclear;
    return now->owner->token == owner_.token ? Standing::ours : Standing::taken;
  } catch (const std::exception&) {
    return Standing::unclear;
  }
}

std::optional<LockFile::Holder> LockFile::holder() const { return read_lock(path_); }

void LockFile::set_run(const std::string& run) noexcept {
  try {
    owner_.run = run;
    // Only for the reader's information: the old record is as good as a lock.
    static_cast<void>(write_record());
  } catch (const std::exception&) {
    return;
  }
}

void LockFile::drop_draft() noexcept { ::unlink(draft_.c_str()); }

/// Drafts and claims of processes that were killed in the moment between, or while they waited, and
/// of such that are alive: time shows which.
void LockFile::list_leftovers() noexcept {
  try {
    const std::filesystem::path lock(path_), folder = lock.parent_path();
    for (const std::string& name : list_folder(folder.string()))
      if (name.starts_with(lock.filename().string() + ".")) leftovers_[(folder / name).string()];
    drop_leftovers();
  } catch (const std::exception&) {
    return;
  }
}

void LockFile::drop_leftovers() noexcept {
  for (auto file = leftovers_.begin(); file != leftovers_.end();) {
    bool done = false;
    try {
      const std::optional<Holder> other = read_lock(file->first);
      const bool ended = other && other->owner && has_ended(*other->owner, owner_);
      const bool silent = other && file->second.look(other->sign) >= expires_seconds_;
      if (ended || silent) ::unlink(file->first.c_str());
      done = !other || ended || silent;
    } catch (const std::exception&) {
      done = false;  // looked at again at the next renewal
    }
    file = done ? leftovers_.erase(file) : std::next(file);
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
