// What the steps of a run say about the terms of a forecast: recursive least squares with
// forgetting (Haykin, Adaptive Filter Theory, section 9.3) on four factors, which begin at 1.
#pragma once
#include <array>

#include "hetero/forecast/step_forecast.hpp"

namespace t3d {

class FactorFilter {
 public:
  /// A step computed for `own` of its `seconds`, where the forecast had these terms. Errors are
  /// taken relative to the seconds.
  void add(const ForecastTerms& terms, double own, double seconds);
  [[nodiscard]] ForecastFactors factors() const;
  [[nodiscard]] index_t steps() const { return steps_; }

 private:
  static constexpr std::size_t kFactors = 4;
  using Vector = std::array<double, kFactors>;
  void observe(const Vector& row, double seconds);

  Vector factors_{1, 1, 1, 1};  // compute, inside, between, host
  /// Uncertainty: factors are known to about a half before the first step.
  std::array<Vector, kFactors> spread_{Vector{0.25, 0, 0, 0}, Vector{0, 0.25, 0, 0},
                                       Vector{0, 0, 0.25, 0}, Vector{0, 0, 0, 0.25}};
  index_t steps_ = 0;
};

}  // namespace t3d
