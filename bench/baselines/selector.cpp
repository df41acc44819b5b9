// Follows the predictor that was best lately: of each kind a discounted Huber error, relative to
// the speed. A simpler one wins a tie.
#include <algorithm>
#include <array>
#include <cmath>

#include "baselines/speed_predictor.hpp"

namespace t3d {
namespace {

constexpr double kDiscount = 0.995;
constexpr double kLinearFrom = 0.1;  // relative error
constexpr double kTie = 1.02;        // errors this close are equal

double huber(double error) {
  const double size = std::abs(error);
  return size <= kLinearFrom ? size * size / 2 : kLinearFrom * (size - kLinearFrom / 2);
}

class Selector : public SpeedPredictor {
 public:
  explicit Selector(std::size_t signals)
      : SpeedPredictor(signals),
        candidates_{make_median(signals, 1), make_median(signals, 5), make_kalman(signals),
                    make_arx(signals), make_narx(signals)} {}
  [[nodiscard]] double predict() const override { return candidates_[best_]->predict(); }

 protected:
  void learn(double speed, std::span<const double> signals) override {
    for (std::size_t n = 0; n < candidates_.size(); ++n) {
      const double predicted = candidates_[n]->predict();
      if (predicted > 0)
        errors_[n] = kDiscount * errors_[n] + (1 - kDiscount) * huber(predicted / speed - 1);
      candidates_[n]->observe(speed, signals);
    }
    double least = errors_[0];
    for (const double error : errors_) least = std::min(least, error);
    best_ = 0;
    while (errors_[best_] > kTie * least) ++best_;
  }

 private:
  std::array<std::unique_ptr<SpeedPredictor>, 5> candidates_;  // from simple to complicated
  std::array<double, 5> errors_{};
  std::size_t best_ = 0;
};

}  // namespace

std::unique_ptr<SpeedPredictor> make_selector(std::size_t signals) {
  return std::make_unique<Selector>(signals);
}

}  // namespace t3d
