// How often nodes come and go, as a job has seen it so far: for sites of which nothing is known
// before. Estimates with a prior of one event.
#pragma once
#include "core/types.hpp"

namespace t3d {

class SeenRates {
 public:
  /// The job had nodes for so long; fewer than it wants: `lacked`.
  void pass(double seconds, bool lacked) {
    held_seconds_ += seconds;
    if (lacked) lacked_seconds_ += seconds;
  }
  /// At one moment.
  void lost() { ++loss_moments_; }
  void came(index_t nodes) { came_ += nodes; }
  void rolled_back() { ++roll_backs_; }

  [[nodiscard]] double losses_per_hour() const {
    return 3600 * double(1 + loss_moments_) / (kPriorLossSeconds + held_seconds_);
  }
  /// With a prior of half an event.
  [[nodiscard]] double roll_backs_per_hour() const {
    return 3600 * (0.5 + double(roll_backs_)) / (kPriorLossSeconds + held_seconds_);
  }
  /// Until the next node, while some are lacking.
  [[nodiscard]] double next_return_seconds() const {
    return (kPriorReturnSeconds + lacked_seconds_) / double(1 + came_);
  }

 private:
  static constexpr double kPriorLossSeconds = 3600, kPriorReturnSeconds = 600;
  double held_seconds_ = 0, lacked_seconds_ = 0;
  index_t loss_moments_ = 0, came_ = 0, roll_backs_ = 0;
};

}  // namespace t3d
