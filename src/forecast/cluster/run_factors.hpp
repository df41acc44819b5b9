// What runs found out about a class's tables: factors of runs put together, and tables corrected by
// them. Pure arithmetic.
#pragma once
#include <algorithm>

#include "forecast/cluster/cluster.hpp"

namespace t3d {

/// A factor with a larger standard error, or a larger one relative to itself, is not used: its run
/// had too little of that term, or runs differ.
inline constexpr double kMostFactorError = 0.25;
[[nodiscard]] inline bool is_used(const RunFactor& factor) {
  return factor.error > 0 && factor.error <= kMostFactorError * std::min(1.0, factor.value);
}

/// Those of further runs put to those that are known, weighted by 1 / error^2. Where two differ by
/// more than their errors, half the difference is the error: runs differ, too.
[[nodiscard]] RunFactors merged_factors(const RunFactors& known, const RunFactors& more);

/// Operators and launches of each class times its factors; levels that are of all classes get one
/// of its own for each class with factors. The factors are 1 then, and of no steps.
[[nodiscard]] Cluster corrected_by_runs(Cluster cluster);

}  // namespace t3d
