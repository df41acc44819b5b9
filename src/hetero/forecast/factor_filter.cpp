#include "hetero/forecast/factor_filter.hpp"

#include <algorithm>

namespace t3d {
namespace {

constexpr double kForgetting = 0.98;
constexpr double kNoise = 0.05;  // of one step, relative
constexpr double kLeastFactor = 0.05;

}  // namespace

void FactorFilter::add(const ForecastTerms& terms, double own, double seconds) {
  if (seconds <= 0 || own < 0) return;
  observe({terms.compute() / seconds, 0, 0, terms.host / seconds}, own / seconds);
  observe({0, terms.messages_inside() / seconds, terms.messages_between() / seconds, 0},
          std::max(0.0, seconds - own) / seconds);
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
    factors_[a] = std::max(kLeastFactor, factors_[a] + gain[a] * (seconds - expected));
    for (std::size_t b = 0; b < kFactors; ++b) spread_[a][b] -= gain[a] * direction[b];
  }
  // What is forgotten comes back as uncertainty, never more than at the beginning.
  for (std::size_t a = 0; a < kFactors; ++a) {
    const double more = std::min(1 / kForgetting, 0.25 / std::max(spread_[a][a], 1e-12));
    for (std::size_t b = 0; b < kFactors; ++b) spread_[a][b] *= a == b ? std::max(1.0, more) : 1;
  }
}

ForecastFactors FactorFilter::factors() const {
  return {
      .compute = factors_[0], .inside = factors_[1], .between = factors_[2], .host = factors_[3]};
}

}  // namespace t3d
