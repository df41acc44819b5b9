// Classes from data sheets: a first guess for a cluster that nobody has measured yet. Never mixed
// up with measurements: each says "uncalibrated (data sheet)", and where it is from.
#pragma once
#include <string>
#include <vector>

#include "forecast/cluster/cluster.hpp"

namespace t3d {

/// Names for --preset.
[[nodiscard]] std::vector<std::string> cluster_presets();
/// A class for each name, its level inside a node, and a network. Error(usage) for a name that is
/// not known, with the nearest.
[[nodiscard]] Cluster cluster_of_presets(const std::vector<std::string>& names);

}  // namespace t3d
