// LaunchGuard: while the ranks of a job meet (MPI_Init and what follows), a rank that dies leaves
// the others waiting inside MPI for ever. Until they have met, a signal that asks to stop ends the
// process at once, with "retry": nothing has been done yet that could be lost. So does a deadline,
// with "peer lost" and a sentence: T3D_LAUNCH_SECONDS in the environment, 180 by default, 0 = none.
// Time in which the process was stopped (scontrol suspend) does not count.
#pragma once
#include <atomic>
#include <thread>

namespace t3d {

class LaunchGuard {
 public:
  /// After block_stop_signals(). Without effect where `parallel` is false: nobody is waited for.
  explicit LaunchGuard(bool parallel);
  LaunchGuard(const LaunchGuard&) = delete;
  LaunchGuard& operator=(const LaunchGuard&) = delete;
  /// The ranks have met.
  ~LaunchGuard();

 private:
  void watch();
  std::atomic<bool> met_{false};
  std::thread thread_;
};

}  // namespace t3d
