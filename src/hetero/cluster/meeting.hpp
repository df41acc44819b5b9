// What ranks lose where they meet: pieces of computing of equal length never take equally long, and
// all wait for the one that takes longest (Petrini, Kerbyson, Pakin: "The Case of the Missing
// Supercomputer Performance", SC 2003; Hoefler, Schneider, Lumsdaine: "Characterizing the Influence
// of System Noise", SC 2010).
#pragma once
#include <cmath>

#include "core/types.hpp"

namespace t3d {

/// Expected largest of `count` standard normals; 0 for one. By Blom's plotting position
/// (Statistical Estimates and Transformed Beta-Variables, 1958) and Tukey's lambda distribution for
/// the normal quantile: 4 % too much for two, 2.4 % for three, within 2 % up to 1,000, 4 % too
/// little for 10,000.
[[nodiscard]] inline double expected_largest(index_t count) {
  if (count < 2) return 0;
  const auto n = static_cast<double>(count);
  const double part = (n - 0.375) / (n + 0.25);
  return (std::pow(part, 0.135) - std::pow(1 - part, 0.135)) / 0.1975;
}

/// Of the computing between two meetings, the part by which `members` that meet after each piece
/// wait longer than their own pieces take, where these differ by `jitter` (NodeClass).
[[nodiscard]] inline double meeting_share(double jitter, index_t members) {
  return jitter > 0 ? jitter * expected_largest(members) : 0;
}

}  // namespace t3d
