#include "sched/ask.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string_view>

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace t3d {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMostBytes = 1U << 20;

/// The user's, without what changes the output of Slurm's commands.
std::vector<char*> plain_environment() {
  constexpr std::array<std::string_view, 7> kLeftOut{"SLURM_TIME_FORMAT=",
                                                     "SLURM_BITSTR_LEN=",
                                                     "SLURM_JSON=",
                                                     "SLURM_YAML=",
                                                     "SCONTROL_",
                                                     "SINFO_",
                                                     "SQUEUE_"};
  std::vector<char*> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto begins = [&](std::string_view with) { return text.starts_with(with); };
    if (std::none_of(kLeftOut.begin(), kLeftOut.end(), begins)) entries.push_back(*entry);
  }
  entries.push_back(nullptr);
  return entries;
}

/// A child starts as a shell would start it, with its output in `out` and nothing to read or to
/// complain to. But it keeps this process's blocked signals: a launcher that asks all processes of
/// a job to end, because one of its ranks did, shall not end the question whether to start it
/// again.
class SpawnSettings {
 public:
  explicit SpawnSettings(int out) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files_, out, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&attributes_);
    sigset_t usual;
    sigfillset(&usual);
    posix_spawnattr_setsigdefault(&attributes_, &usual);
    // A group of its own: Ctrl-C at the terminal is not meant for it.
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  [[nodiscard]] bool start(pid_t& child, std::vector<char*>& words) const {
    std::vector<char*> entries = plain_environment();
    return posix_spawnp(&child, words.front(), &files_, &attributes_, words.data(),
                        entries.data()) == 0;
  }

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
};

/// All that comes until the end; false where the end does not come in time.
bool read_to_end(int file, Clock::time_point deadline, std::string& text) {
  std::array<char, 4096> bytes{};
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd entry{file, POLLIN, 0};
    if (left <= 0) return false;
    if (poll(&entry, 1, static_cast<int>(left)) < 0 && errno != EINTR) return false;
    if (entry.revents == 0) continue;
    const ssize_t got = read(file, bytes.data(), bytes.size());
    if (got == 0) return true;
    if (got < 0 && errno != EINTR) return false;
    if (got > 0) text.append(bytes.data(), static_cast<std::size_t>(got));
    if (text.size() > kMostBytes) return false;
  }
}

/// Whether it ends before the deadline, with its status.
bool ends_before(pid_t child, Clock::time_point deadline, int& status) {
  constexpr timespec kLook{0, 2'000'000};
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() > deadline) return false;
    nanosleep(&kLook, nullptr);
  }
  return true;
}

/// Its status; killed where it outlives the deadline, -1 where it hangs in the system even then
/// (its program on a file server that is gone).
int wait_for_end(pid_t child, Clock::time_point deadline) {
  int status = 0;
  if (ends_before(child, deadline, status)) return status;
  kill(child, SIGKILL);
  return ends_before(child, Clock::now() + std::chrono::seconds(1), status) ? status : -1;
}

}  // namespace

std::optional<std::string> output_of(const std::vector<std::string>& words, double limit_seconds) {
  std::array<int, 2> ends{};
  if (words.empty() || pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const bool started = SpawnSettings(ends[1]).start(child, arguments);
  close(ends[1]);
  std::string text;
  int status = -1;
  if (started) {
    auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                       std::chrono::duration<double>(limit_seconds));
    if (!read_to_end(ends[0], deadline, text)) deadline = Clock::now();
    status = wait_for_end(child, deadline);
  }
  close(ends[0]);
  if (!started || status == -1 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return std::nullopt;
  return text;
}

}  // namespace t3d
