// What ranks must hold alike, as numbers that travel in the step's report and are summed over all
// ranks: a mark of each rank's plan and of what it has decided, and a digest of each replica's
// weights. Sums are exact in fp64, so that all ranks see the same, and see it in the same step.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace t3d {

/// Of a plan and of a decision (0 = none): 18 bits, whose squares' sum over 65,536 ranks is exact.
[[nodiscard]] double mark_of(const std::string& plan_hash, std::uint64_t decision, index_t step);
/// All ranks have the same mark, by their sum and that of their squares: then alone the mean of the
/// squares is the square of the mean.
[[nodiscard]] bool marks_agree(double sum, double squares, index_t ranks);
/// "ranks 3 and 5" whose marks are not those of most.
[[nodiscard]] std::string minority_text(const std::vector<double>& marks);

/// One rank's part of a sum over replicas, each times a number of its own; these numbers add up to
/// 0 modulo 2^32. So the sum is 0 where the digests of all replicas are equal, and between two
/// replicas only then. `digest`: of this rank's shards; those of a replica add up to its digest.
[[nodiscard]] double replica_part(std::uint64_t digest, index_t d, index_t replicas, index_t step);
[[nodiscard]] bool replicas_agree(double sum);

/// The digests of all replicas, and what follows from them.
struct ReplicaDigests {
  std::vector<std::uint64_t> of;  // by replica
  /// One of those that more than half have.
  [[nodiscard]] std::optional<index_t> sound() const;
  /// Those with another digest than replica `d`.
  [[nodiscard]] std::vector<index_t> unlike(index_t d) const;
};

}  // namespace t3d
