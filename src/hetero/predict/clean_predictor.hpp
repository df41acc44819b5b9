// What all predictors do first: replace values that are no numbers by those before.
#pragma once
#include <vector>

#include "hetero/predict/speed_predictor.hpp"

namespace t3d {

class CleanPredictor : public SpeedPredictor {
 public:
  explicit CleanPredictor(std::size_t signals) : signals_(signals, 0.0) {}
  void observe(double speed, std::span<const double> signals) final;

 protected:
  /// A speed > 0 and signals, all finite.
  virtual void learn(double speed, std::span<const double> signals) = 0;
  [[nodiscard]] std::size_t signals() const { return signals_.size(); }

 private:
  double speed_ = 0;             // the last valid one
  std::vector<double> signals_;  // likewise
};

// One file each; for make_predictor.
[[nodiscard]] std::unique_ptr<SpeedPredictor> make_last(std::size_t signals);
[[nodiscard]] std::unique_ptr<SpeedPredictor> make_median(std::size_t signals);
[[nodiscard]] std::unique_ptr<SpeedPredictor> make_kalman(std::size_t signals);
[[nodiscard]] std::unique_ptr<SpeedPredictor> make_arx(std::size_t signals);
[[nodiscard]] std::unique_ptr<SpeedPredictor> make_narx(std::size_t signals);
[[nodiscard]] std::unique_ptr<SpeedPredictor> make_selector(std::size_t signals);

}  // namespace t3d
