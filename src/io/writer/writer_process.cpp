#include "io/writer/writer_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "io/writer/writer_main.hpp"

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace t3d {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const char* what, int reason) {
  throw_error(ExitCode::unavailable, "cannot {} the process that writes a checkpoint: {}", what,
              std::strerror(reason));
}

/// Closes on the way out.
struct OpenFile {
  int number = -1;
  ~OpenFile() {
    if (number >= 0) ::close(number);
  }
};

/// A file without a name that holds `text`, to be read from its beginning.
int file_of(const std::string& text) {
  OpenFile file{::memfd_create("t3d-task", MFD_CLOEXEC)};
  if (file.number < 0) fail("instruct", errno);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(file.number, text.data() + done, text.size() - done);
    if (wrote < 0 && errno != EINTR) fail("instruct", errno);
    if (wrote > 0) done += static_cast<std::size_t>(wrote);
  }
  if (::lseek(file.number, 0, SEEK_SET) != 0) fail("instruct", errno);
  return std::exchange(file.number, -1);
}

/// A copy of `file` beyond the numbers that the child gives to its own files.
int beyond(int file) {
  constexpr int kFirst = 16;
  const int copy = ::fcntl(file, F_DUPFD_CLOEXEC, kFirst);
  if (copy < 0) fail("start", errno);
  return copy;
}

/// The child's files: task, answer, snapshot.
pid_t spawn(const char* what, const std::string& text, int pipe, int snapshot_file,
            const std::string& cores) {
  const OpenFile named{file_of(text)}, task{beyond(named.number)}, answer{beyond(pipe)},
      snapshot{snapshot_file >= 0 ? beyond(snapshot_file) : -1};
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&files, task.number, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);  // a library's words
  posix_spawn_file_actions_adddup2(&files, answer.number, kAnswerFile);
  if (snapshot.number >= 0)
    posix_spawn_file_actions_adddup2(&files, snapshot.number, kSnapshotFile);
  // A group of its own: Ctrl-C at the terminal is not meant for it. The signals that this process
  // blocks stay blocked.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const std::string parent = std::to_string(::getpid());
  const std::array<const char*, 6> words{"transformer3d", kWriterCommand, parent.c_str(), what,
                                         cores.c_str(),   nullptr};
  pid_t child = -1;
  const int reason = posix_spawn(&child, "/proc/self/exe", &files, &attributes,
                                 const_cast<char* const*>(words.data()), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (reason != 0) fail("start", reason);
  return child;
}

std::string end_of(int status) {
  if (WIFSIGNALED(status)) return fmt::format("by signal {}", strsignal(WTERMSIG(status)));
  return fmt::format("with status {}", WEXITSTATUS(status));
}

}  // namespace

WriterProcess::WriterProcess(const char* what, const std::string& task, int snapshot,
                             double limit_seconds, const std::string& cores)
    : limit_seconds_(limit_seconds), looked_(Clock::now()) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("start", errno);
  OpenFile from{ends[0]};
  const OpenFile to{ends[1]};
  ::fcntl(from.number, F_SETFL, O_NONBLOCK);
  process_ = spawn(what, task, to.number, snapshot, cores);
  pipe_ = std::exchange(from.number, -1);
}

WriterProcess::~WriterProcess() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    // One that hangs in a file system's call ends when that does: it is not waited for.
    constexpr int kLooks = 500;
    for (int look = 0; look < kLooks && ::waitpid(process_, nullptr, WNOHANG) == 0; ++look)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (pipe_ >= 0) ::close(pipe_);
}

const std::optional<TaskResult>& WriterProcess::look() {
  if (result_) return result_;
  read_what_is_there();
  count_time();
  if (!result_ && limit_seconds_ > 0 && seconds_ > limit_seconds_) {
    ::kill(process_, SIGKILL);
    result_ = result_of(text_, "it took longer than debug.io_seconds");
  }
  return result_;
}

// While this process was stopped (scontrol suspend), so was the other: a pause between two looks
// counts as a part of the limit only.
void WriterProcess::count_time() {
  constexpr double kMostPart = 0.1;
  const Clock::time_point now = Clock::now();
  const double pause = std::chrono::duration<double>(now - looked_).count();
  seconds_ += std::min(pause, kMostPart * limit_seconds_);
  looked_ = now;
}

void WriterProcess::read_what_is_there() {
  std::array<char, 1 << 16> bytes{};
  for (;;) {
    const ssize_t got = ::read(pipe_, bytes.data(), bytes.size());
    if (got > 0) {
      text_.append(bytes.data(), static_cast<std::size_t>(got));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    break;
  }
  int status = 0;
  // It has said its last word but may still hang in its end, in a file system's call: it is looked
  // at again, until its time is over.
  if (::waitpid(process_, &status, WNOHANG) == 0) return;
  process_ = -1;
  result_ = result_of(text_, status == 0 ? "" : end_of(status));
}

}  // namespace t3d
