// The gradient noise scale of a run, step by step: the batch, in sequences, at which the noise of
// the mean gradient is as large as what it has in common with the true one (McCandlish et al. 2018,
// "An Empirical Model of Large-Batch Training", appendix A.1). Estimates of one step are without
// bias but say little; their ratio is one of means, which must not be the mean of ratios.
#pragma once
#include <cmath>
#include <limits>

#include "core/choices.hpp"
#include "core/run_event.hpp"

namespace t3d {

/// noise / signal; not a number where one of them is not above 0.
[[nodiscard]] inline double noise_scale(double signal, double noise) {
  return signal > 0 && noise > 0 ? noise / signal : std::numeric_limits<double>::quiet_NaN();
}

/// The exponential means of mean and sum. Adasum keeps its own, by group of parameters, as part of
/// the run's state; these begin anew with every life and change nothing.
class NoiseScale {
 public:
  /// Sets report.noise_sequences from what the report and those before it say.
  void follow(StepReport& report, AggregateMethod method) {
    if (method == AggregateMethod::adasum) return;
    if (std::isfinite(report.gradient_signal) && std::isfinite(report.gradient_noise)) {
      signal_ = kDecay * signal_ + (1 - kDecay) * report.gradient_signal;
      noise_ = kDecay * noise_ + (1 - kDecay) * report.gradient_noise;
    }
    report.noise_sequences = noise_scale(signal_, noise_);
  }

 private:
  static constexpr double kDecay = 0.98;  // about 50 steps: the scale itself changes slowly
  double signal_ = 0, noise_ = 0;         // too small by the same factor at first
};

}  // namespace t3d
