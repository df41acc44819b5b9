// What a plan's figures rest on: that rates are from data sheets, that something was never
// measured.
#pragma once
#include <string>
#include <vector>

#include "forecast/cluster/cluster.hpp"

namespace t3d {

/// A line for each thing that was guessed; nothing where all was measured. `compute`: the run's.
[[nodiscard]] std::vector<std::string> guessed_parts(const Cluster& cluster, ComputeType compute);

}  // namespace t3d
