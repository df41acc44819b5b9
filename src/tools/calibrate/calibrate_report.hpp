// What calibrate shows: rates by class, levels, storage, and how well estimates hold for shapes
// that were left out.
#pragma once
#include <string>
#include <vector>

#include "forecast/cluster/cluster.hpp"

namespace t3d {

/// `notes`: what could not be measured. `seconds`: what was asked for; too little for some
/// operators is said.
[[nodiscard]] std::string calibrate_report(const Cluster& measured,
                                           const std::vector<std::string>& notes, double seconds);

}  // namespace t3d
