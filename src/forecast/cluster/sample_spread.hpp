// How far measured times of one operator differ: whether they are results.
#pragma once
#include <span>
#include <vector>

#include "core/robust.hpp"
#include "forecast/cluster/cluster.hpp"

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

/// Of the same shapes measured twice, each with the smaller relative error.
[[nodiscard]] inline std::vector<Sample> better_samples(std::vector<Sample> first,
                                                        const std::vector<Sample>& second) {
  for (Sample& sample : first)
    for (const Sample& again : second)
      if (again.shape == sample.shape &&
          again.error / again.seconds < sample.error / sample.seconds)
        sample = again;
  return first;
}

}  // namespace t3d
