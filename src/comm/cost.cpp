#include "comm/cost.hpp"

#include <numeric>

namespace t3d {

index_t all_gather_bytes(std::span<const index_t> counts, int rank, DType dtype) {
  const auto others = static_cast<index_t>(counts.size()) - 1;
  return others * counts[static_cast<std::size_t>(rank)] * size_of(dtype);
}

index_t reduce_scatter_bytes(std::span<const index_t> counts, int rank, DType dtype) {
  const index_t total = std::accumulate(counts.begin(), counts.end(), index_t{0});
  return (total - counts[static_cast<std::size_t>(rank)]) * size_of(dtype);
}

index_t all_reduce_bytes(index_t count, int ranks, int rank, DType dtype) {
  if (count <= kSmallAllReduce) return (ranks - 1) * count * size_of(dtype);
  const auto counts = Partition::even("all_reduce", count, ranks).sizes();
  return reduce_scatter_bytes(counts, rank, dtype) + all_gather_bytes(counts, rank, dtype);
}

index_t broadcast_bytes(index_t count, int ranks, bool root, DType dtype) {
  return root ? (ranks - 1) * count * size_of(dtype) : 0;
}

}  // namespace t3d
