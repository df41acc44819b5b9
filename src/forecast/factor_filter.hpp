// What the steps of a run say about the terms of a forecast: recursive least squares with
// forgetting (Haykin, Adaptive Filter Theory, section 9.3) on four factors, which begin at 1, and
// on the part of a step that no table knows.
//
// That part is what ranks wait for each other because none is equally fast at every step. Without
// it a run with few messages would say that messages take many times as long, and a plan with many
// would be expected far too slow. One run alone cannot tell the two apart: what is known beforehand
// does, factors to about a half and waiting to about a twentieth of a step.
#pragma once
#include <array>

#include "forecast/step_forecast.hpp"

namespace t3d {

class FactorFilter {
 public:
  FactorFilter();
  /// A step computed for `own` of its `seconds` on the rank that computed longest, where the
  /// forecast had these terms. Errors are taken relative to the seconds.
  void add(const ForecastTerms& terms, double own, double seconds);
  [[nodiscard]] ForecastFactors factors() const;
  /// Their standard errors: 0.5 where the steps said nothing.
  [[nodiscard]] ForecastFactors errors() const;
  [[nodiscard]] index_t steps() const { return steps_; }

 private:
  static constexpr std::size_t kFactors = 5, kWaiting = 4;
  using Vector = std::array<double, kFactors>;
  void observe(const Vector& row, double seconds);

  /// Variances before the first step.
  static constexpr Vector kFirst{0.25, 0.25, 0.25, 0.25, 0.0025};
  Vector factors_{1, 1, 1, 1, 0};  // compute, inside, between, host, waiting
  std::array<Vector, kFactors> spread_{};
  index_t steps_ = 0;
};

}  // namespace t3d
