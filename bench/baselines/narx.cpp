// NARX: a network of one hidden layer of 8 tanh units over the same inputs as ARX. It learns
// online: after every step Adam (Kingma and Ba, 2015) goes along the mean gradient of the newest
// sample and of 32 drawn from the last 400, errors clipped (Huber). Until it has seen 100 steps it
// answers with their median.
#include <algorithm>
#include <array>
#include <cmath>

#include "baselines/regressors.hpp"
#include "baselines/speed_predictor.hpp"
#include "core/random.hpp"

namespace t3d {
namespace {

constexpr std::size_t kHidden = 8, kMemory = 400, kDraws = 32;
constexpr index_t kColdSteps = 100;
constexpr double kRate = 0.005, kClip = 0.1;
constexpr double kKeepMean = 0.9, kKeepSquare = 0.999;
constexpr RandomKey kWeightsKey{0, stream_of("narx weights")},
    kDrawsKey{0, stream_of("narx draws")};

class NarxPredictor : public SpeedPredictor {
 public:
  explicit NarxPredictor(std::size_t signals)
      : SpeedPredictor(signals),
        regressors_(signals),
        inputs_(regressors_.inputs().size()),
        weights_(kHidden * (inputs_ + 2) + 1),
        gradient_(weights_.size()),
        mean_(weights_.size()),
        square_(weights_.size()) {
    // Hidden units: small random weights of the inputs; the sum of the units begins at 0.
    for (std::size_t unit = 0; unit < kHidden; ++unit)
      for (std::size_t n = 0; n < inputs_; ++n)
        weights_[row(unit) + n] =
            random_normal(kWeightsKey, index_t(row(unit) + n)) / std::sqrt(double(inputs_));
  }
  [[nodiscard]] double predict() const override {
    if (steps_ < kColdSteps) return regressors_.scale();
    return regressors_.scale() * std::clamp(1 + output(regressors_.inputs()), 0.25, 4.0);
  }

 protected:
  void learn(double speed, std::span<const double> signals) override {
    if (steps_ > 0) {
      remember(speed / regressors_.scale() - 1);
      improve();
    }
    regressors_.push(speed, signals);
    ++steps_;
  }

 private:
  /// Per hidden unit: weights of the inputs, its offset, its weight in the sum; at last the sum's.
  [[nodiscard]] std::size_t row(std::size_t unit) const { return unit * (inputs_ + 2); }

  double output(std::span<const double> inputs) const {
    double sum = weights_.back();
    for (std::size_t unit = 0; unit < kHidden; ++unit) {
      const double* const w = &weights_[row(unit)];
      double before = w[inputs_];
      for (std::size_t n = 0; n < inputs_; ++n) before += w[n] * inputs[n];
      hidden_[unit] = std::tanh(before);
      sum += w[inputs_ + 1] * hidden_[unit];
    }
    return sum;
  }

  void remember(double target) {
    const auto inputs = regressors_.inputs();
    const std::size_t at = std::size_t(steps_ - 1) % kMemory;
    if (targets_.size() < kMemory) {
      samples_.insert(samples_.end(), inputs.begin(), inputs.end());
      targets_.push_back(target);
    } else {
      std::copy(inputs.begin(), inputs.end(), samples_.begin() + std::ptrdiff_t(at * inputs_));
      targets_[at] = target;
    }
    newest_ = at;
  }

  void improve() {
    std::fill(gradient_.begin(), gradient_.end(), 0.0);
    add_gradient(newest_);
    for (std::size_t draw = 0; draw < kDraws; ++draw)
      add_gradient(random_bits(kDrawsKey, steps_ * index_t(kDraws) + index_t(draw)) %
                   targets_.size());
    const double mean_bias = 1 - std::pow(kKeepMean, double(steps_));
    const double square_bias = 1 - std::pow(kKeepSquare, double(steps_));
    for (std::size_t n = 0; n < weights_.size(); ++n) {
      const double slope = gradient_[n] / (kDraws + 1);
      mean_[n] += (1 - kKeepMean) * (slope - mean_[n]);
      square_[n] += (1 - kKeepSquare) * (slope * slope - square_[n]);
      weights_[n] -= kRate * (mean_[n] / mean_bias) / (std::sqrt(square_[n] / square_bias) + 1e-8);
    }
  }

  void add_gradient(std::size_t sample) {
    const std::span<const double> inputs =
        std::span<const double>(samples_).subspan(sample * inputs_, inputs_);
    const double error = std::clamp(output(inputs) - targets_[sample], -kClip, kClip);
    for (std::size_t unit = 0; unit < kHidden; ++unit) {
      const double* const w = &weights_[row(unit)];
      double* const g = &gradient_[row(unit)];
      const double back = error * w[inputs_ + 1] * (1 - hidden_[unit] * hidden_[unit]);
      for (std::size_t n = 0; n < inputs_; ++n) g[n] += back * inputs[n];
      g[inputs_] += back;
      g[inputs_ + 1] += error * hidden_[unit];
    }
    gradient_.back() += error;
  }

  Regressors regressors_;
  std::size_t inputs_;
  std::vector<double> weights_, gradient_, mean_, square_;  // Adam's
  mutable std::array<double, kHidden> hidden_{};            // of the last output()
  std::vector<double> samples_, targets_;                   // [samples, inputs], a ring
  std::size_t newest_ = 0;
  index_t steps_ = 0;
};

}  // namespace

std::unique_ptr<SpeedPredictor> make_narx(std::size_t signals) {
  return std::make_unique<NarxPredictor>(signals);
}

}  // namespace t3d
