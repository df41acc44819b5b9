#include "comm/cost.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace t3d {
namespace {

index_t total_of(std::span<const index_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), index_t{0});
}

index_t others_with_parts(std::span<const index_t> counts, int rank) {
  const auto empty = std::count(counts.begin(), counts.end(), 0);
  const bool own = counts[static_cast<std::size_t>(rank)] > 0;
  return std::ssize(counts) - empty - (own ? 1 : 0);
}

}  // namespace

bool gathers_in_rounds(index_t bytes, int ranks) {
  return ranks > kFlatRanks && bytes <= kSmallPart * ranks;
}

int blocks_in_round(int distance, int ranks) { return std::min(distance, ranks - distance); }

int doubling_ranks(int ranks) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
}

DType partial_type_of(DType dtype) { return is_half(dtype) ? DType::f32 : dtype; }

int rounds_of(int ranks) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(ranks - 1)));
}

Traffic all_gather_traffic(std::span<const index_t> counts, int rank, DType dtype) {
  return all_gather_traffic(static_cast<int>(counts.size()), rank, dtype, [&](int before) {
    return total_of(counts.first(static_cast<std::size_t>(before)));
  });
}

Traffic reduce_scatter_traffic(std::span<const index_t> counts, int rank, DType dtype) {
  const index_t foreign = total_of(counts) - counts[static_cast<std::size_t>(rank)];
  return {foreign * size_of(dtype), others_with_parts(counts, rank)};
}

Traffic all_reduce_traffic(index_t count, int ranks, int rank, DType dtype) {
  if (count > kSmallAllReduce) {
    const auto begin = [&](int part) { return even_begin(count, ranks, part); };
    const index_t own = begin(rank + 1) - begin(rank);
    const index_t with_parts = std::min<index_t>(count, ranks);
    const Traffic scatter{(count - own) * size_of(dtype), with_parts - (own > 0 ? 1 : 0)};
    return scatter + all_gather_traffic(ranks, rank, dtype, begin);
  }
  if (count == 0) return {};
  if (ranks <= kFlatRanks) return {(ranks - 1) * count * size_of(dtype), ranks - 1};
  const int doubling = doubling_ranks(ranks);
  index_t messages = 1;  // beyond the power of two: its numbers
  if (rank < doubling) messages = rounds_of(doubling) + (rank + doubling < ranks ? 1 : 0);
  return {messages * count * size_of(partial_type_of(dtype)), messages};
}

std::vector<int> broadcast_children(int ranks, int rank, int root) {
  // Ranks are counted from the root. The parent is the number without its lowest set bit.
  const int place = (rank + ranks - root) % ranks;
  const int lowest = place == 0 ? 1 << rounds_of(ranks) : place & -place;
  std::vector<int> children;
  for (int step = lowest / 2; step > 0; step /= 2)
    if (place + step < ranks) children.push_back((place + step + root) % ranks);
  return children;
}

int broadcast_parent(int ranks, int rank, int root) {
  const int place = (rank + ranks - root) % ranks;
  return ((place & (place - 1)) + root) % ranks;
}

Traffic broadcast_traffic(index_t count, int ranks, int rank, int root, DType dtype) {
  if (count == 0) return {};
  index_t messages = rank == root ? ranks - 1 : 0;
  if (ranks > kFlatRanks) messages = std::ssize(broadcast_children(ranks, rank, root));
  return {messages * count * size_of(dtype), messages};
}

Traffic barrier_traffic(int ranks) { return {0, rounds_of(ranks)}; }

}  // namespace t3d
