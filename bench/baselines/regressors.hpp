// Inputs of the regressions (ARX, NARX): the last three speeds relative to the rank's own median,
// and each signal for the step to come and of the one before.
#pragma once
#include <array>
#include <span>
#include <vector>

namespace t3d {

class Regressors {
 public:
  static constexpr std::size_t kLags = 3;
  explicit Regressors(std::size_t signals) : signals_(signals), inputs_(kLags + 2 * signals) {}

  /// A step's speed, and the signals of the next.
  void push(double speed, std::span<const double> signals);

  /// The speed that is 1 in the inputs: the median of the last 50. 0 before the first step.
  [[nodiscard]] double scale() const { return scale_; }
  /// Speeds as speed / scale - 1, latest first; then, per signal, its next and its last value.
  /// A single speed that differs from the one before by more than 4 deviations of such differences
  /// is replaced by that one; of two in a row that agree both stay.
  [[nodiscard]] std::span<const double> inputs() const { return inputs_; }

 private:
  void fill(std::span<const double> signals);

  static constexpr std::size_t kWindow = 50;
  static constexpr int kRefresh = 5;
  std::size_t signals_;
  std::vector<double> speeds_;        // as given, the latest last
  std::array<double, kLags> lags_{};  // cleaned, the latest first
  bool spike_ = false;                // the latest lag is a replacement
  std::vector<double> differences_;   // sizes, between neighbouring speeds
  double scale_ = 0, deviation_ = 0;  // medians, taken anew every few steps
  int until_refresh_ = 0;
  std::vector<double> inputs_;
};

}  // namespace t3d
