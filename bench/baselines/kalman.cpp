// Kalman filter of a local level: log speed = level + noise r, the level walks with variance q per
// step. A value far from the expected one is left out, unless the one before was so too, on the
// same side: then the level has jumped. Both variances come from the series itself: differences
// over n steps have variance n q + 2 r.
#include <algorithm>
#include <cmath>

#include "baselines/speed_predictor.hpp"
#include "core/robust.hpp"

namespace t3d {
namespace {

constexpr double kGate = 5;            // standard deviations of the innovation
constexpr std::size_t kHistory = 200;  // values from which the variances are taken
constexpr int kRefresh = 10;           // steps between two times
constexpr double kFirstNoise = 0.02;   // until there are enough

class KalmanPredictor : public SpeedPredictor {
 public:
  using SpeedPredictor::SpeedPredictor;
  [[nodiscard]] double predict() const override { return started_ ? std::exp(level_) : 0; }

 protected:
  void learn(double speed, std::span<const double>) override {
    const double value = std::log(speed);
    if (values_.size() == kHistory) values_.erase(values_.begin());
    values_.push_back(value);
    if (values_.size() >= 2 * kRefresh && --until_refresh_ <= 0) take_variances();
    if (!started_) return jump_to(value);
    started_ = true;
    variance_ += walk_;
    const double innovation = value - level_, expected = variance_ + noise_;
    const int side = innovation * innovation <= kGate * kGate * expected ? 0
                     : innovation > 0                                    ? 1
                                                                         : -1;
    if (side != 0 && side == outside_) return jump_to(value);
    outside_ = side;
    if (side != 0) return;
    const double gain = variance_ / expected;
    level_ += gain * innovation;
    variance_ *= 1 - gain;
  }

 private:
  void jump_to(double value) {
    level_ = value;
    variance_ = noise_;
    outside_ = 0;
    started_ = true;
  }

  /// Robust variance of the differences over `lag` steps.
  [[nodiscard]] double variance_of_differences(std::size_t lag) const {
    std::vector<double> sizes;
    for (std::size_t n = lag; n < values_.size(); ++n)
      sizes.push_back(std::abs(values_[n] - values_[n - lag]));
    const double most = kGate * kMadToDeviation * median_of(sizes);
    double squares = 0, kept = 0;
    for (const double size : sizes) {
      if (size > most) continue;
      squares += size * size;
      kept += 1;
    }
    return squares / kept;
  }

  void take_variances() {
    until_refresh_ = kRefresh;
    constexpr std::size_t kLag = 4;
    const double one = variance_of_differences(1), many = variance_of_differences(kLag);
    constexpr double kLeast = 1e-12;
    walk_ = std::max({(many - one) / double(kLag - 1), one / 50, kLeast});
    noise_ = std::max({(one - walk_) / 2, one / 20, kLeast});
  }

  std::vector<double> values_;
  int until_refresh_ = 0;
  bool started_ = false;
  int outside_ = 0;  // the last value was left out, above (+1) or below (-1)
  double level_ = 0, variance_ = 0;
  double noise_ = kFirstNoise * kFirstNoise, walk_ = kFirstNoise * kFirstNoise / 4;
};

}  // namespace

std::unique_ptr<SpeedPredictor> make_kalman(std::size_t signals) {
  return std::make_unique<KalmanPredictor>(signals);
}

}  // namespace t3d
