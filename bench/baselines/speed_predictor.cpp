#include "baselines/speed_predictor.hpp"

#include <cmath>

#include "core/error.hpp"

namespace t3d {

std::unique_ptr<SpeedPredictor> make_predictor(PredictorKind kind, std::size_t signals) {
  switch (kind) {
    case PredictorKind::automatic: return make_selector(signals);
    case PredictorKind::last: return make_median(signals, 1);
    case PredictorKind::median: return make_median(signals, 5);
    case PredictorKind::regime: return make_regime(signals);
    case PredictorKind::kalman: return make_kalman(signals);
    case PredictorKind::arx: return make_arx(signals);
    case PredictorKind::narx: return make_narx(signals);
  }
  return nullptr;
}

void SpeedPredictor::observe(double speed, std::span<const double> signals) {
  T3D_CHECK(signals.size() == signals_.size(), "{} signals, {} at construction", signals.size(),
            signals_.size());
  for (std::size_t n = 0; n < signals.size(); ++n)
    if (std::isfinite(signals[n])) signals_[n] = signals[n];
  if (std::isfinite(speed) && speed > 0) speed_ = speed;
  if (speed_ > 0) learn(speed_, signals_);
}

}  // namespace t3d
