// What calibrate shows: rates by class, levels, storage, and how well estimates hold for shapes
// that were left out.
#pragma once
#include <string>
#include <vector>

#include "hetero/cluster/cluster.hpp"

namespace t3d {

/// `notes`: what could not be measured.
[[nodiscard]] std::string calibrate_report(const Cluster& measured,
                                           const std::vector<std::string>& notes);

}  // namespace t3d
