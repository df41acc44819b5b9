// Clocks of the calling thread, in seconds.
#pragma once
#include <ctime>

namespace t3d {

/// CPU time: stands still while the thread sleeps, waits, or has lost its core to somebody else.
[[nodiscard]] inline double thread_cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// What this thread has slept so far because it emulates a slower rank (comm/dilation.hpp).
[[nodiscard]] inline double& paused_seconds() {
  thread_local double seconds = 0;
  return seconds;
}

/// CPU time that the slower rank would have used beyond this thread's. More than paused_seconds()
/// where the thread lost its core to others in between.
[[nodiscard]] inline double& emulated_cpu_seconds() {
  thread_local double seconds = 0;
  return seconds;
}

}  // namespace t3d
