// A program started as a child, such as mpirun: in a process group of its own, with nothing to read
// and its output in a file. It ends when this program is asked to stop, and when it dies.
#pragma once
#include <string>
#include <vector>

namespace t3d {

struct LaunchEnd {
  int status = 0;        // exit code, or 128 + signal
  bool stopped = false;  // this program was asked to stop, and has ended the child
};

/// `variables`: added to the environment where they are not set there. Stop signals must be blocked
/// (block_stop_signals()). Error(unavailable) where the program cannot be started, Error(io) where
/// `log` cannot be written.
[[nodiscard]] LaunchEnd launch(const std::vector<std::string>& words,
                               const std::vector<std::string>& variables, const std::string& log);

}  // namespace t3d
