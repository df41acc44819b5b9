// Bytes that one rank sends in each collective: pure functions, the formula side of the ledger.
// All algorithms are pairwise exchanges: a rank sends no more than the (n-1)/n of the data that any
// algorithm must (Chan et al. 2007, "Collective communication: theory, practice, and experience").
#pragma once
#include <span>

#include "core/dtype.hpp"
#include "core/partition.hpp"
#include "core/types.hpp"

namespace t3d {

/// Own part to each of the others.
[[nodiscard]] index_t all_gather_bytes(std::span<const index_t> counts, int rank, DType dtype);
/// Every other rank's part to its owner.
[[nodiscard]] index_t reduce_scatter_bytes(std::span<const index_t> counts, int rank, DType dtype);
/// Up to kSmallAllReduce elements: everything to everybody; else reduce-scatter + all-gather over
/// Partition::even(count, ranks).
[[nodiscard]] index_t all_reduce_bytes(index_t count, int ranks, int rank, DType dtype);
inline constexpr index_t kSmallAllReduce = 512;
/// The root sends everything to each of the others.
[[nodiscard]] index_t broadcast_bytes(index_t count, int ranks, bool root, DType dtype);

}  // namespace t3d
