// IdleClock: how long somebody who polls has waited without progress. While the process itself was
// stopped (SIGSTOP, scontrol suspend) or had no core, nobody could have made progress in its eyes:
// of a pause between two looks only a second counts. While others say that they are busy
// (comm/busy.hpp), time is counted apart.
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
  /// The others are busy: what has passed does not count, up to `most` seconds (0 = no limit).
  void excuse(double most) {
    if (most > 0 && excused_ + idle_ > most) return;
    excused_ += idle_;
    idle_ = 0;
  }
  [[nodiscard]] double idle() const { return idle_; }
  /// Excused or not.
  [[nodiscard]] double whole() const { return excused_ + idle_; }
  void progress(Clock::time_point now) {
    idle_ = excused_ = 0;
    last_ = now;
  }

 private:
  Clock::time_point last_;
  double idle_ = 0, excused_ = 0;
};

}  // namespace t3d
