// Who computes which matrix. A matrix that must be seen whole (Muon) is computed by one rank of its
// cuboid, its owner; owners are chosen so that all ranks end at about the same time. Pure
// arithmetic, the same on every rank.
#pragma once
#include <span>
#include <vector>

#include "core/types.hpp"

namespace t3d {

struct MatrixOwners {
  std::vector<int> owner;                   // by matrix
  std::vector<std::vector<index_t>> owned;  // by rank: its matrices, costliest first
  /// In round x every rank computes its x-th matrix, if it has one.
  [[nodiscard]] index_t rounds() const;
  /// The matrix that `rank` computes in `round`, or kNone.
  [[nodiscard]] index_t matrix(int rank, index_t round) const;
  static constexpr index_t kNone = -1;
};

/// Longest processing time first: the costliest matrix goes where it ends earliest, and so on; ties
/// go to the earlier matrix and the lower rank. At most 4/3 of the best time where speeds are equal
/// (Graham 1969). A rank of speed 0 gets nothing; one speed at least is above 0.
[[nodiscard]] MatrixOwners choose_owners(std::span<const double> costs,
                                         std::span<const double> speeds);

/// optimizer.newton_schulz_steps' default: what costs and the probe take for granted.
inline constexpr index_t kNewtonSchulzSteps = 5;
/// Flops of `steps` Newton-Schulz iterations on a matrix.
[[nodiscard]] double newton_schulz_flops(index_t rows, index_t cols, index_t steps);

}  // namespace t3d
