// Who computes which matrix, and when. A matrix that must be seen whole (Muon) is computed by one
// rank of its cuboid, its owner; owners are chosen so that all ranks end at about the same time.
// Pure arithmetic, the same on every rank.
//
// Matrices travel in rounds. The rank with most matrices computes one in every round; a matrix of a
// slower rank, or a larger one, takes several: its parts arrive before the first of them, its
// result leaves after the last.
#pragma once
#include <span>
#include <vector>

#include "core/types.hpp"

namespace t3d {

struct MatrixOwners {
  std::vector<int> owner;                   // by matrix
  std::vector<std::vector<index_t>> owned;  // by rank: its matrices, in the order of computing
  std::vector<std::vector<index_t>> last;   // as `owned`: the round in which each is done, rising

  [[nodiscard]] index_t rounds() const;
  /// The matrix that `rank` begins, or ends, in `round`, or kNone.
  [[nodiscard]] index_t beginning(int rank, index_t round) const;
  [[nodiscard]] index_t ending(int rank, index_t round) const;
  /// `rank` has begun a matrix in `round`, or before, which ends later.
  [[nodiscard]] bool busy_after(int rank, index_t round) const;
  static constexpr index_t kNone = -1;
};

/// Longest processing time first: the costliest matrix goes where it ends earliest, and so on; ties
/// go to the earlier matrix and the lower rank. At most 4/3 of the best time where speeds are equal
/// (Graham 1969). Where they differ and ranks are not many, matrices of the last rank to end are
/// then moved and exchanged as long as that lets it end earlier. A rank of speed 0 gets nothing;
/// one speed at least is above 0.
[[nodiscard]] MatrixOwners choose_owners(std::span<const double> costs,
                                         std::span<const double> speeds);

/// optimizer.newton_schulz_steps' default: what costs and the probe take for granted.
inline constexpr index_t kNewtonSchulzSteps = 5;
/// Flops of `steps` Newton-Schulz iterations on a matrix.
[[nodiscard]] double newton_schulz_flops(index_t rows, index_t cols, index_t steps);

}  // namespace t3d
