// ARX: the next speed is linear in the last three and in the signals; recursive least squares with
// forgetting 0.995 (Ljung, System Identification, 1999, section 11.2), large errors weighted down
// (Huber).
#include <algorithm>
#include <cmath>

#include "baselines/regressors.hpp"
#include "baselines/speed_predictor.hpp"

namespace t3d {
namespace {

constexpr double kForget = 0.995, kFirstVariance = 10, kLargestVariance = 1e3;

class ArxPredictor : public SpeedPredictor {
 public:
  explicit ArxPredictor(std::size_t signals)
      : SpeedPredictor(signals),
        regressors_(signals),
        size_(regressors_.inputs().size() + 1),
        weights_(size_),
        inputs_(size_),
        gain_(size_),
        covariance_(size_ * size_) {
    weights_[0] = 1;  // begins as the last speed
    for (std::size_t n = 0; n < size_; ++n) covariance_[n * size_ + n] = kFirstVariance;
  }
  [[nodiscard]] double predict() const override {
    // Whatever the weights say: within a factor of 4 of the usual.
    return scale_ * std::clamp(1 + output(), 0.25, 4.0);
  }

 protected:
  void learn(double speed, std::span<const double> signals) override {
    if (scale_ > 0) correct(speed / scale_ - 1 - output());
    regressors_.push(speed, signals);
    scale_ = regressors_.scale();
    const auto inputs = regressors_.inputs();
    std::copy(inputs.begin(), inputs.end(), inputs_.begin());
    inputs_.back() = 1;
  }

 private:
  [[nodiscard]] double output() const {
    double sum = 0;
    for (std::size_t n = 0; n < size_; ++n) sum += weights_[n] * inputs_[n];
    return sum;
  }

  void correct(double error) {
    const double limit = 2 * error_size_;
    const double weight = std::abs(error) <= limit ? 1 : limit / std::abs(error);
    error_size_ += 0.02 * (std::min(std::abs(error), 2 * limit) - error_size_);
    double denominator = kForget / weight, trace = 0;
    for (std::size_t row = 0; row < size_; ++row) {
      gain_[row] = 0;
      for (std::size_t column = 0; column < size_; ++column)
        gain_[row] += covariance_[row * size_ + column] * inputs_[column];
      denominator += inputs_[row] * gain_[row];
      trace += covariance_[row * size_ + row];
    }
    // Inputs that never change teach nothing: what is known must not be forgotten then.
    const double forget = trace < kLargestVariance ? kForget : 1;
    for (std::size_t row = 0; row < size_; ++row) weights_[row] += gain_[row] / denominator * error;
    for (std::size_t row = 0; row < size_; ++row)
      for (std::size_t column = 0; column < size_; ++column) {
        double& entry = covariance_[row * size_ + column];
        entry = (entry - gain_[row] * gain_[column] / denominator) / forget;
      }
  }

  Regressors regressors_;
  std::size_t size_;
  double scale_ = 0;
  double error_size_ = 0.05;  // running mean of |error|
  std::vector<double> weights_, inputs_, gain_, covariance_;
};

}  // namespace

std::unique_ptr<SpeedPredictor> make_arx(std::size_t signals) {
  return std::make_unique<ArxPredictor>(signals);
}

}  // namespace t3d
