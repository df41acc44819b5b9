#include "io/writer/writer_main.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

#include "device/host_limits.hpp"
#include "io/writer/writer_task.hpp"

namespace t3d {
namespace {

constexpr int kYields = 5;  // steps of niceness

/// The rank is bound to its cores; those of the job's other ranks on this host may be free. All
/// others may be another job's.
void use_cores(const std::string& cores) {
  const cpu_set_t mask = parse_cores(cores);
  if (CPU_COUNT(&mask) > 0) static_cast<void>(sched_setaffinity(0, sizeof mask, &mask));
}

std::string read_all(int file) {
  std::string text;
  std::array<char, 1 << 16> bytes{};
  for (;;) {
    const ssize_t got = ::read(file, bytes.data(), bytes.size());
    if (got == 0) return text;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) std::_Exit(1);
    text.append(bytes.data(), static_cast<std::size_t>(got));
  }
}

bool write_all(int file, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(file, text.data() + done, text.size() - done);
    if (wrote < 0 && errno != EINTR) return false;
    if (wrote > 0) done += static_cast<std::size_t>(wrote);
  }
  return true;
}

}  // namespace

std::optional<int> run_checkpoint_writer(int argc, char** argv) {
  if (argc != 5 || std::strcmp(argv[1], kWriterCommand) != 0) return std::nullopt;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (std::to_string(::getppid()) != argv[2]) return 1;  // the rank had ended before
  ::prctl(PR_SET_NAME, "t3d-writer");
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  use_cores(argv[4]);
  static_cast<void>(::setpriority(PRIO_PROCESS, 0, kYields));
  const TaskResult result = run_task(read_all(STDIN_FILENO), kSnapshotFile);
  return write_all(kAnswerFile, text_of(result)) ? 0 : 1;
}

}  // namespace t3d
