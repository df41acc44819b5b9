#include "baselines/regressors.hpp"

#include <algorithm>
#include <cmath>

#include "core/robust.hpp"

namespace t3d {

namespace {

void push_back_of(std::vector<double>& values, double value, std::size_t most) {
  if (values.size() == most) values.erase(values.begin());
  values.push_back(value);
}

}  // namespace

void Regressors::push(double speed, std::span<const double> signals) {
  if (speeds_.empty()) lags_.fill(speed);
  const double before = speeds_.empty() ? speed : speeds_.back();
  const double limit = 4 * std::max(deviation_, 0.01 * lags_[0]);
  const bool far = std::abs(speed - lags_[0]) > limit;
  const bool agrees = spike_ && far && std::abs(speed - before) <= limit;
  if (agrees) lags_[0] = before;  // a change, no spike
  std::copy_backward(lags_.begin(), lags_.end() - 1, lags_.end());
  spike_ = far && !agrees;
  if (!spike_) lags_[0] = speed;
  push_back_of(differences_, std::abs(speed - before), kWindow);
  push_back_of(speeds_, speed, kWindow);
  if (speeds_.size() < kWindow || --until_refresh_ <= 0) {
    scale_ = median_of(speeds_);
    deviation_ = kMadToDeviation * median_of(differences_);
    until_refresh_ = kRefresh;
  }
  fill(signals);
}

void Regressors::fill(std::span<const double> signals) {
  for (std::size_t lag = 0; lag < kLags; ++lag) inputs_[lag] = lags_[lag] / scale_ - 1;
  const bool first = speeds_.size() == 1;
  for (std::size_t n = 0; n < signals_; ++n) {
    double* const pair = &inputs_[kLags + 2 * n];
    pair[1] = first ? signals[n] : pair[0];
    pair[0] = signals[n];
  }
}

}  // namespace t3d
