#include "io/file_rate.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "core/error.hpp"
#include "core/phase_clock.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

constexpr index_t kPart = index_t{4} << 20;

/// Numbers that no file system can make smaller.
std::vector<char> noise() {
  std::vector<char> bytes(static_cast<std::size_t>(kPart));
  std::uint64_t state = 0x9e3779b97f4a7c15U;
  for (char& byte : bytes) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    byte = static_cast<char>(state);
  }
  return bytes;
}

/// What is clean goes from memory; nothing is promised, and some file systems do nothing.
void forget(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  static_cast<void>(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED));
  close(file);
}

}  // namespace

FileTrial::FileTrial(const std::string& folder, const std::string& name)
    : file_((std::filesystem::path(folder) / name).string()) {}

double FileTrial::write(index_t bytes) {
  static const std::vector<char> part = noise();
  const double start = PhaseClock::now();
  const auto stream = open_to_append(file_.name());
  for (index_t done = 0; done < bytes;) {
    const index_t now = std::min(kPart, bytes - done);
    if (std::fwrite(part.data(), 1, static_cast<std::size_t>(now), stream.get()) !=
        static_cast<std::size_t>(now))
      throw_error(ExitCode::io, "cannot write {}: {}", file_.name(), std::strerror(errno));
    done += now;
  }
  if (std::fflush(stream.get()) != 0 || fsync(fileno(stream.get())) != 0)
    throw_error(ExitCode::io, "cannot write {}: {}", file_.name(), std::strerror(errno));
  size_ += bytes;
  return PhaseClock::now() - start;
}

double FileTrial::read() {
  forget(file_.name());
  std::vector<char> part(static_cast<std::size_t>(kPart));
  const double start = PhaseClock::now();
  const FileReader file(file_.name());
  for (index_t done = 0; done < size_; done += kPart)
    file.read_at(done, part.data(), std::min(kPart, size_ - done));
  return PhaseClock::now() - start;
}

double small_file_seconds(const std::string& folder, const std::string& name) {
  const double start = PhaseClock::now();
  PartialFile file((std::filesystem::path(folder) / name).string());
  (void)open_to_append(file.name());  // created and closed
  sync_path(file.name());
  // As PartialFile::publish(), to a second name that goes, too.
  PartialFile renamed(file.path());
  rename_durably(file.name(), renamed.name());
  return PhaseClock::now() - start;
}

}  // namespace t3d
