// StepTrial: has a change of shares made the whole step longer? Own times do not show it: where the
// ranks compute for a shorter time and their messages take longer, the step may lose. So the times
// of whole steps, gathered from all ranks, are compared before and after. The same on every rank.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/run_event.hpp"
#include "hetero/balance/share_controller.hpp"

namespace t3d {

class StepTrial {
 public:
  explicit StepTrial(const BalanceOptions& options) : options_(options) {}

  /// After a measured step with these shares.
  void observe(const StepReport& report, std::span<const index_t> shares);
  /// These shares are to take effect instead of those of the last steps.
  void begin(std::span<const index_t> next);
  /// Once, a window after a change: the shares from before it, where the step became longer by more
  /// than noise and balance.min_gain, and what ranks do not compute is half of that at least. (What
  /// they compute is the controller's to judge.)
  [[nodiscard]] std::optional<std::vector<index_t>> judge();
  /// For a while after a change was taken back, twice as long each time, nothing is changed.
  [[nodiscard]] bool holds() const { return hold_ > 0; }
  /// One line: why judge() gave shares.
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  struct Seconds {
    double median = 0, error = 0;
  };
  /// Of a step, and of its part in which the slowest rank does not compute.
  struct Looks {
    std::vector<double> steps, rests;
  };
  struct Trial {
    std::vector<index_t> before, after;
    Seconds step, rest;
  };
  [[nodiscard]] static Seconds seconds_of(const std::vector<double>& looks);

  BalanceOptions options_;
  std::vector<index_t> shares_;  // of the looks
  Looks looks_;                  // a window of them
  std::optional<Trial> trial_;
  index_t hold_ = 0, next_hold_ = 0;  // looks
  std::string reason_;
};

}  // namespace t3d
