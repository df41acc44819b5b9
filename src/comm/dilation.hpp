// Dilation: makes this rank compute slower, for emulation. Between two calls of the communicator a
// rank computes; before it may send or wait again it sleeps until that has taken `factor` times its
// CPU time. A sleeping rank uses no core, so that many slow ranks can share few cores; what it lost
// to the others there is part of what it would have slept.
#pragma once
#include <chrono>
#include <functional>

#include "core/thread_clock.hpp"

namespace t3d {

class Dilation {
 public:
  /// 1 = off.
  void set_factor(double factor);
  [[nodiscard]] bool on() const { return factor_ > 1; }
  /// So much was computed since resume() that it should be slept for now, although no message is
  /// due: ranks that share cores and computed for long at once would be in each other's way.
  [[nodiscard]] bool due() const;
  /// Sleeps for what was computed since resume(), in slices of 0.2 ms; `progress` runs in between,
  /// so that messages of others do not wait for this rank's sleep. Once it says that no message is
  /// under way the rest is slept in one piece.
  void pay(const std::function<bool()>& progress);
  /// From here on the rank computes.
  void resume();
  /// These seconds, and of them so many of CPU time, were not computing.
  void exclude(double seconds, double cpu_seconds);

 private:
  using Clock = std::chrono::steady_clock;
  double factor_ = 1;
  double cpu_since_ = 0;  // of the thread's CPU time
  Clock::time_point since_{};
};

}  // namespace t3d
