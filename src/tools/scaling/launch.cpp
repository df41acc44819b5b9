#include "tools/scaling/launch.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "core/error.hpp"
#include "sched/stop_signal.hpp"

namespace t3d {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 50ms;      // between two looks whether the child has ended
constexpr auto kPatience = 15s;   // for a launcher that was asked to end
constexpr int kNotStarted = 127;  // as shells say it

/// Between fork and exec: nothing but system calls.
[[noreturn]] void become(char* const* words, int log, int failure, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kNotStarted);  // it has died already
  sigset_t none;
  sigemptyset(&none);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP, SIGPIPE, SIGXFSZ})
    std::signal(number, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execvp(words[0], words);
  const int reason = errno;
  static_cast<void>(!write(failure, &reason, sizeof reason));
  _exit(kNotStarted);
}

/// Asks the group to end, and ends it where it does not.
int end_child(pid_t child) {
  int status = 0;
  kill(-child, SIGTERM);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      kill(-child, SIGKILL);
      waitpid(child, &status, 0);
      break;
    }
    timespec pause{0, 20'000'000};
    nanosleep(&pause, nullptr);
  }
  return status;
}

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace

LaunchEnd launch(const std::vector<std::string>& words, const std::vector<std::string>& variables,
                 const std::string& log) {
  for (const std::string& variable : variables) {
    const std::size_t equals = variable.find('=');
    setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 0);
  }
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) throw_error(ExitCode::io, "cannot write {}: {}", log, std::strerror(errno));
  std::vector<std::string> copies = words;
  std::vector<char*> pointers;
  for (std::string& word : copies) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::array<int, 2> failure{};
  if (pipe2(failure.data(), O_CLOEXEC) != 0)
    throw_error(ExitCode::unavailable, "no pipe: {}", std::strerror(errno));
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) become(pointers.data(), file, failure[1], parent);
  close(file);
  close(failure[1]);
  int reason = child < 0 ? errno : 0;
  const bool failed = child < 0 || read(failure[0], &reason, sizeof reason) == sizeof reason;
  close(failure[0]);
  int status = 0;
  if (failed) {
    if (child > 0) waitpid(child, &status, 0);
    throw_error(ExitCode::unavailable, "cannot start {}: {}", words.front(), std::strerror(reason));
  }
  setpgid(child, child);
  while (waitpid(child, &status, WNOHANG) == 0)
    if (wait_for_stop_signal(kLook) != 0) return {code_of(end_child(child)), true};
  return {code_of(status), false};
}

}  // namespace t3d
