// Columns of a flat buffer by segment, as kernels see them. Segments are many and most of them
// short (a transformer block has about 12 tensors), so one launch takes up to 64 of them, by value
// in its parameters, and cuts them into chunks, one per block. Chunks and the packs in them begin
// at fixed columns of the buffer: which thread meets which column depends on the segment alone, not
// on where the buffer lies, and a segment that begins between borders has full packs all the same.
#pragma once
#include <span>

#include "ops/aggregate_args.hpp"
#include "ops/cuda/elements.cuh"

namespace t3d::cuda {

inline constexpr index_t kChunkColumns = 4096;  // part of a Gram matrix's bits
inline constexpr int kMostRows = 64;

struct SegmentTable {
  static constexpr int kMost = 64;
  index_t begin[kMost], end[kMost];
  int group[kMost];
  int first_chunk[kMost + 1];  // in the launch; at `count`: how many there are
  int count;
};

/// Calls fn with tables that hold all segments, in order.
template <class Fn>
void each_segment_table(std::span<const Segment> segments, const Fn& fn) {
  SegmentTable table{};
  for (const Segment& segment : segments) {
    if (segment.begin >= segment.end) continue;
    const index_t first = segment.begin / kChunkColumns;
    const index_t chunks = blocks_for(segment.end, kChunkColumns) - first;
    table.begin[table.count] = segment.begin;
    table.end[table.count] = segment.end;
    table.group[table.count] = static_cast<int>(segment.group);
    const int before = table.first_chunk[table.count];
    table.first_chunk[++table.count] = before + static_cast<int>(chunks);
    if (table.count < SegmentTable::kMost) continue;
    fn(table);
    table.count = 0;
  }
  if (table.count > 0) fn(table);
}

/// Columns [from, to) of a segment; `base` is the multiple of kChunkColumns where packs begin.
struct Chunk {
  int segment;
  index_t base, from, to;
  template <int N>
  [[nodiscard]] __device__ __forceinline__ bool holds_pack(index_t col) const {
    return col >= from && col + N <= to;
  }
  [[nodiscard]] __device__ __forceinline__ bool holds(index_t col) const {
    return col >= from && col < to;
  }
};

[[nodiscard]] __device__ __forceinline__ Chunk chunk_at(const SegmentTable& table, int number) {
  int low = 0, high = table.count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (table.first_chunk[middle] <= number ? low : high) = middle;
  }
  const index_t begin = table.begin[low];
  const index_t base = (begin / kChunkColumns + number - table.first_chunk[low]) * kChunkColumns;
  return {low, base, max(begin, base), min(table.end[low], base + kChunkColumns)};
}

}  // namespace t3d::cuda
