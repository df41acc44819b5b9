#include "forecast/factor_filter.hpp"

#include <algorithm>
#include <cmath>

namespace t3d {
namespace {

constexpr double kForgetting = 0.98;
constexpr double kNoise = 0.05;  // of one step, relative
constexpr double kLeastFactor = 0.05, kMostWaiting = 0.9;

}  // namespace

FactorFilter::FactorFilter() {
  for (std::size_t at = 0; at < kFactors; ++at) spread_[at][at] = kFirst[at];
}

void FactorFilter::add(const ForecastTerms& terms, double own, double seconds) {
  if (seconds <= 0 || own < 0) return;
  observe({terms.compute() / seconds, 0, 0, terms.host / seconds, 0}, own / seconds);
  observe({0, terms.messages_inside() / seconds, terms.messages_between() / seconds, 0, 1},
          std::max(0.0, seconds - own - terms.meeting) / seconds);
  ++steps_;
}

void FactorFilter::observe(const Vector& row, double seconds) {
  Vector gain{};
  double scale = kNoise * kNoise, expected = 0;
  for (std::size_t a = 0; a < kFactors; ++a) {
    for (std::size_t b = 0; b < kFactors; ++b) gain[a] += spread_[a][b] * row[b];
    scale += gain[a] * row[a];
    expected += factors_[a] * row[a];
  }
  const Vector direction = gain;
  for (double& one : gain) one /= scale;
  for (std::size_t a = 0; a < kFactors; ++a) {
    const double least = a == kWaiting ? 0 : kLeastFactor;
    factors_[a] = std::max(least, factors_[a] + gain[a] * (seconds - expected));
    for (std::size_t b = 0; b < kFactors; ++b) spread_[a][b] -= gain[a] * direction[b];
  }
  factors_[kWaiting] = std::min(factors_[kWaiting], kMostWaiting);
  // What is forgotten comes back as uncertainty, never more than at the beginning.
  for (std::size_t a = 0; a < kFactors; ++a) {
    const double more = std::min(1 / kForgetting, kFirst[a] / std::max(spread_[a][a], 1e-12));
    for (std::size_t b = 0; b < kFactors; ++b) spread_[a][b] *= a == b ? std::max(1.0, more) : 1;
  }
}

ForecastFactors FactorFilter::errors() const {
  const auto error = [&](std::size_t at) { return std::sqrt(std::max(0.0, spread_[at][at])); };
  return {.compute = error(0), .inside = error(1), .between = error(2), .host = error(3)};
}

ForecastFactors FactorFilter::factors() const {
  return {.compute = factors_[0],
          .inside = factors_[1],
          .between = factors_[2],
          .host = factors_[3],
          .waiting = factors_[kWaiting]};
}

}  // namespace t3d
