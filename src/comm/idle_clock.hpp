// IdleClock: how long somebody who polls has waited without progress. While the process itself was
// stopped (SIGSTOP, scontrol suspend) or had no core, nobody could have made progress in its eyes:
// of a pause between two looks only a second counts.
#pragma once
#include <algorithm>
#include <chrono>

namespace t3d {

class IdleClock {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr double kMostPerLook = 1;  // seconds

  explicit IdleClock(Clock::time_point now) : last_(now) {}
  /// Seconds until `now`; looks come much more often than once in kMostPerLook seconds.
  double look(Clock::time_point now) {
    idle_ += std::min(kMostPerLook, std::chrono::duration<double>(now - last_).count());
    last_ = now;
    return idle_;
  }
  void progress(Clock::time_point now) {
    idle_ = 0;
    last_ = now;
  }

 private:
  Clock::time_point last_;
  double idle_ = 0;
};

}  // namespace t3d
