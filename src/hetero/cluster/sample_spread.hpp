// How far measured times of one operator differ: whether they are results.
#pragma once
#include <span>
#include <vector>

#include "hetero/cluster/cluster.hpp"
#include "hetero/robust.hpp"

namespace t3d {

/// Above it a time says little: of fewer than three calls the spread is given as 100 %.
inline constexpr double kWideSpread = 0.2;

/// Median of the samples' relative standard errors; 0 of none.
[[nodiscard]] inline double spread_of(const std::vector<Sample>& samples) {
  if (samples.empty()) return 0;
  std::vector<double> spreads;
  for (const Sample& sample : samples) spreads.push_back(sample.error / sample.seconds);
  return median_of(std::span<const double>(spreads));
}

[[nodiscard]] inline bool spreads_widely(const std::vector<Sample>& samples) {
  return spread_of(samples) > kWideSpread;
}

}  // namespace t3d
