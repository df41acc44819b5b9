// What ranks lose where they meet: pieces of computing of equal length never take equally long, and
// all wait for the one that takes longest (Petrini, Kerbyson, Pakin: "The Case of the Missing
// Supercomputer Performance", SC 2003; Hoefler, Schneider, Lumsdaine: "Characterizing the Influence
// of System Noise", SC 2010).
#pragma once
#include <algorithm>
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

/// By how much pieces of computing differ between ranks, relative to their length: those of
/// kJitterPiece by `relative`, others by relative x (length / kJitterPiece)^-exponent. Disturbances
/// that have nothing to do with each other average out in long pieces (exponent 0.5); where ranks
/// share cores they do not (0). Lengths beyond kShortestPiece and kLongestPiece count as these.
struct Jitter {
  double relative = 0, exponent = 0;
  [[nodiscard]] double of(double piece_seconds) const;
};
inline constexpr double kJitterPiece = 1e-3, kShortestPiece = 1e-4, kLongestPiece = 0.1;

inline double Jitter::of(double piece_seconds) const {
  if (relative <= 0 || exponent <= 0) return relative;
  const double piece = std::clamp(piece_seconds, kShortestPiece, kLongestPiece);
  return relative * std::pow(piece / kJitterPiece, -exponent);
}

/// Seconds by which `members` that meet `meetings` times, at equal distances, need longer than the
/// `computing` of one. With the computing, the sum of both does not get smaller; nor with the
/// meetings.
[[nodiscard]] inline double meeting_seconds(const Jitter& jitter, index_t members, double computing,
                                            double meetings) {
  if (jitter.relative <= 0) return 0;
  return jitter.of(computing / std::max(1.0, meetings)) * expected_largest(members) * computing;
}

}  // namespace t3d
