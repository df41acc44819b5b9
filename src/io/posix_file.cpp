#include "io/posix_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "io/crc32c.hpp"
#include "io/read_patience.hpp"

namespace t3d {
namespace {

[[noreturn]] void fail(const char* verb, const std::string& path) {
  const int reason = errno;
  throw Error(ExitCode::io, fmt::format("cannot {} {}: {}", verb, path, std::strerror(reason)),
              true);
}

void write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t done = ::write(fd, text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) fail("write", path);
    text.remove_prefix(static_cast<std::size_t>(done));
  }
}

/// False when there is nothing of that name.
bool status_of(const std::string& path, struct stat& status) {
  for (Tries tries;;) {
    if (::stat(path.c_str(), &status) == 0) return true;
    // Nothing is below a file either.
    if (errno == ENOENT || errno == ENOTDIR) return false;
    if (!tries.again(errno, path)) fail("look at", path);
  }
}

/// Without waiting: a pipe in the place of a file would be waited for before it can be refused.
int open_once(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/// For writing into what stands there, which is tried again as reading is.
int open_to_change(const std::string& path, int flags) {
  constexpr mode_t kMode = 0644;
  for (Tries tries;;) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | flags, kMode);
    if (fd >= 0 || !tries.again(errno, path)) return fd;
  }
}

/// A handle can be stale for good: `fd` becomes a new one. False, with a reason, where another file
/// has taken its place.
bool opened_again(int fd, const std::string& path, index_t size) {
  const int fresh = open_once(path);
  if (fresh < 0) return true;  // not yet
  struct stat old {
  }, now{};
  const bool known = ::fstat(fd, &old) == 0;
  const bool same = ::fstat(fresh, &now) == 0 && now.st_size >= size &&
                    (known ? now.st_ino == old.st_ino : now.st_size == size);
  if (same) ::dup3(fresh, fd, O_CLOEXEC);
  ::close(fresh);
  if (!same) errno = ESTALE;
  return same;
}

/// 0, or the system's reason why the names cannot be read.
int read_names(DIR* folder, std::vector<std::string>& names) {
  names.clear();
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(folder);
    if (entry == nullptr) return errno;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
}

}  // namespace

FileReader::FileReader(const std::string& path) : path_(path) {
  fd_ = open_once(path);
  for (Tries tries; fd_ < 0 && tries.again(errno, path);) fd_ = open_once(path);
  if (fd_ < 0 && errno == ENOENT) throw_error(ExitCode::no_input, "{} does not exist", path);
  if (fd_ < 0) fail("open", path);
  struct stat status {};
  if (::fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd_);
    throw_error(ExitCode::io, "{} is {}", path,
                S_ISDIR(status.st_mode) ? "a folder" : "not a regular file");
  }
  size_ = status.st_size;
}

FileReader::~FileReader() { ::close(fd_); }

void FileReader::read_at(index_t offset, void* out, index_t bytes) const {
  const index_t done = read_up_to(offset, out, bytes);
  if (done < bytes)
    throw_error(ExitCode::io, "{} ends at byte {}, {} more expected", path_, offset + done,
                bytes - done);
}

index_t FileReader::read_up_to(index_t offset, void* out, index_t bytes) const {
  auto* to = static_cast<std::byte*>(out);
  index_t read = 0;
  Tries tries;
  while (read < bytes) {
    const ssize_t done =
        ::pread(fd_, to + read, static_cast<std::size_t>(bytes - read), offset + read);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && tries.again(errno, path_) && opened_again(fd_, path_, size_)) continue;
    if (done < 0) fail("read", path_);
    if (done == 0) break;
    read += done;
    tries.went_on();
  }
  return read;
}

std::string read_text_file(const std::string& path) { return read_text(FileReader(path)); }

std::string read_record_file(const std::string& path) {
  constexpr index_t kMostBytes = 1 << 20;
  const FileReader file(path);
  if (file.size() > kMostBytes)
    throw_error(ExitCode::io, "{} is too long: {}", path,
                format_bytes(static_cast<double>(file.size())));
  return read_text(file);
}

std::string read_text(const FileReader& file) {
  constexpr index_t kAtOnce = 1 << 16;
  std::string text;
  for (index_t done = kAtOnce; done == kAtOnce;) {
    const std::size_t end = text.size();
    text.resize(end + kAtOnce);
    done = file.read_up_to(static_cast<index_t>(end), text.data() + end, kAtOnce);
    text.resize(end + static_cast<std::size_t>(done));
  }
  return text;
}

std::unique_ptr<std::FILE, CloseFile> open_to_append(const std::string& path) {
  const int fd = open_to_change(path, O_APPEND | O_CREAT);
  if (fd < 0) fail("write", path);
  struct stat status {};
  if (::fstat(fd, &status) != 0 || S_ISFIFO(status.st_mode)) {
    ::close(fd);
    throw_error(ExitCode::io, "{} is not a regular file", path);
  }
  std::unique_ptr<std::FILE, CloseFile> file(::fdopen(fd, "a"));
  if (!file) fail("write", path);
  return file;
}

std::string replaceable_file(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the system's own limit
  struct stat status {};
  if (status_of(path, status) && !S_ISREG(status.st_mode))
    throw_error(ExitCode::io, "{} is {}", path,
                S_ISDIR(status.st_mode) ? "a folder" : "not a regular file");
  std::filesystem::path target = path;
  for (int link = 0; link < kMostLinks; ++link) {
    std::error_code none;
    const std::filesystem::path next = std::filesystem::read_symlink(target, none);
    if (none) return target.string();
    target = target.parent_path() / next;
  }
  errno = ELOOP;
  fail("follow", path);
}

void replace_durably(const std::string& path,
                     const std::function<std::optional<std::string>()>& next_piece) {
  constexpr std::size_t kAtOnce = 1 << 20, kUnsynced = 64 << 20;
  const std::string file = replaceable_file(path), temporary = file + ".tmp";
  int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) fail("create", temporary);
  try {
    std::string text;
    std::size_t unsynced = 0;
    while (auto piece = next_piece()) {
      text += *piece;
      if (text.size() < kAtOnce) continue;
      write_all(fd, text, temporary);
      unsynced += text.size();
      text.clear();
      // Of a long file the disk takes a part at a time, rather than all at the end.
      if (unsynced >= kUnsynced && ::fdatasync(fd) != 0) fail("fsync", temporary);
      if (unsynced >= kUnsynced) unsynced = 0;
    }
    write_all(fd, text, temporary);
    if (::fsync(fd) != 0) fail("fsync", temporary);
    if (::close(std::exchange(fd, -1)) != 0) fail("close", temporary);
    rename_durably(temporary, file);
  } catch (...) {
    if (fd >= 0) ::close(fd);
    ::unlink(temporary.c_str());
    throw;
  }
}

void write_text_durably(const std::string& path, std::string_view text) {
  bool given = false;
  replace_durably(path, [&]() -> std::optional<std::string> {
    if (std::exchange(given, true)) return std::nullopt;
    return std::string(text);
  });
}

void copy_durably(const std::string& source, const std::string& path, index_t bytes) {
  constexpr index_t kAtOnce = 1 << 22;
  const FileReader from(source);
  index_t at = 0;
  replace_durably(path, [&]() -> std::optional<std::string> {
    if (at >= bytes) return std::nullopt;
    std::string piece(static_cast<std::size_t>(std::min(bytes - at, kAtOnce)), '\0');
    from.read_at(at, piece.data(), std::ssize(piece));
    at += std::ssize(piece);
    return piece;
  });
}

void truncate_durably(const std::string& path, index_t bytes) {
  const int fd = open_to_change(path, 0);
  if (fd < 0) fail("open", path);
  if (::ftruncate(fd, bytes) != 0 || ::fsync(fd) != 0) {
    const int reason = errno;
    ::close(fd);
    errno = reason;
    fail("cut", path);
  }
  if (::close(fd) != 0) fail("close", path);
}

void sync_path(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail("open", path);
  if (::fsync(fd) != 0) {
    const int reason = errno;
    ::close(fd);
    errno = reason;
    fail("fsync", path);
  }
  if (::close(fd) != 0) fail("close", path);
}

void rename_durably(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail("rename", from);
  sync_path(folder_of(to));
}

index_t file_size(const std::string& path) {
  struct stat status {};
  return status_of(path, status) && S_ISREG(status.st_mode) ? status.st_size : -1;
}

std::optional<double> file_time(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return static_cast<double>(status.st_mtim.tv_sec) +
         1e-9 * static_cast<double>(status.st_mtim.tv_nsec);
}

bool path_exists(const std::string& path) {
  struct stat status {};
  return status_of(path, status);
}

bool is_folder(const std::string& path) {
  struct stat status {};
  return status_of(path, status) && S_ISDIR(status.st_mode);
}

std::vector<std::string> list_folder(const std::string& path) {
  const auto close = [](DIR* folder) { ::closedir(folder); };
  std::vector<std::string> names;
  for (Tries tries;;) {
    const std::unique_ptr<DIR, decltype(close)> folder(::opendir(path.c_str()), close);
    const int reason = folder ? read_names(folder.get(), names) : errno;
    if (folder && reason == 0) return names;
    struct stat link {};  // a link to something that is not there now is not "no folder"
    if (reason == ENOENT && ::lstat(path.c_str(), &link) != 0) return {};
    errno = reason;
    if (!tries.again(reason, path)) fail("list", path);
  }
}

std::uint32_t file_crc32c(const std::string& path) {
  const FileReader file(path);
  std::vector<std::byte> buffer(static_cast<std::size_t>(4 * kCrcBlockBytes));
  std::uint32_t crc = 0xffffffffU;
  const auto most = static_cast<index_t>(buffer.size());
  for (index_t at = 0; at < file.size(); at += most) {
    const index_t now = std::min(most, file.size() - at);
    file.read_at(at, buffer.data(), now);
    crc = crc32c(buffer.data(), static_cast<std::size_t>(now), crc);
  }
  return crc;
}

double free_bytes(const std::string& folder) {
  struct statvfs status {};
  if (::statvfs(folder.c_str(), &status) != 0) fail("ask for the free space of", folder);
  return static_cast<double>(status.f_bavail) * static_cast<double>(status.f_frsize);
}

std::string folder_of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

void make_folder(const std::string& path) {
  if (is_folder(path)) return;
  const std::string parent = folder_of(path);
  if (parent != path) make_folder(parent);
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) fail("create folder", path);
  sync_path(parent);
}

std::string format_bytes(double bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 2, kUnits[unit]);
}

}  // namespace t3d
