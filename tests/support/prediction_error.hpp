// How well a predictor of speeds does on synthetic series.
#pragma once
#include <cmath>

#include "baselines/speed_predictor.hpp"
#include "support/speed_series.hpp"

namespace t3d::test {

inline constexpr index_t kScoredSteps = 1600, kWarmUp = 200;

/// Root mean square of predicted / true - 1, over the series of eight seeds from `first` on; spikes
/// and the first 200 steps of each are not scored.
[[nodiscard]] inline double prediction_error(PredictorKind kind, bool informative,
                                             std::uint64_t first = 0) {
  double squares = 0;
  index_t scored = 0;
  for (std::uint64_t seed = first; seed < first + 8; ++seed) {
    const auto predictor = make_predictor(kind, 2);
    const auto series = speed_series(kWarmUp + kScoredSteps + 1, seed, informative);
    for (std::size_t step = 0; step + 1 < series.size(); ++step) {
      const SpeedSample& next = series[step + 1];
      predictor->observe(series[step].speed, next.signals);
      if (next.spike || step < std::size_t(kWarmUp)) continue;
      const double error = predictor->predict() / next.speed - 1;
      squares += error * error;
      ++scored;
    }
  }
  return std::sqrt(squares / double(scored));
}

}  // namespace t3d::test
