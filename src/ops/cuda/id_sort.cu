// Radix sort from the lowest byte up, as many passes as a row number has bytes (two for tables of
// up to 65535 rows). A pass has three kernels: every block counts the digits of its tile; one block
// turns the counts into places, digit by digit and tile by tile; every block moves its tile there.
// Inside a tile a warp owns a run of consecutive elements, 32 at a time: lanes with equal digits
// find each other by eight ballots, so that an element's place is the warp's next place plus its
// number among them, and order is kept. Integers only: the result does not depend on timing. Bytes
// per element and pass: 12 read (4 of them twice), 8 written; the time is that of the launches. Not
// measured.
#include <utility>

#include "ops/cuda/id_sort.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/reduce.cuh"

namespace t3d::cuda {
namespace {

constexpr int kDigits = 256, kDigitBits = 8;
constexpr int kWarps = 8, kThreads = kWarps * kWarp;
constexpr int kRounds = 8;  // of 32 elements per warp
constexpr int kTile = kThreads * kRounds;

__global__ void __launch_bounds__(kThreads)
    rows_of_ids(const std::int32_t* ids, index_t row0, index_t table_rows, int count,
                std::int32_t* rows, std::int32_t* positions) {
  const int at = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (at >= count) return;
  const index_t row = ids[at] - row0;
  rows[at] = static_cast<std::int32_t>(row >= 0 && row < table_rows ? row : table_rows);
  positions[at] = at;
}

/// One element per lane of the warp's run in a tile, and which lanes have the same digit.
struct Lane {
  int at;
  bool valid;
  int digit;
  unsigned peers;
};
__device__ __forceinline__ Lane lane_of(const std::int32_t* rows, int count, int shift, int round) {
  const int thread = static_cast<int>(threadIdx.x);
  Lane lane{};
  lane.at = static_cast<int>(blockIdx.x) * kTile + thread / kWarp * (kTile / kWarps) +
            round * kWarp + thread % kWarp;
  lane.valid = lane.at < count;
  lane.digit = lane.valid ? (rows[lane.at] >> shift) & (kDigits - 1) : 0;
  lane.peers = __ballot_sync(kAllLanes, lane.valid);
#pragma unroll
  for (int bit = 0; bit < kDigitBits; ++bit) {
    const bool set = (lane.digit >> bit & 1) != 0;
    const unsigned with = __ballot_sync(kAllLanes, set);
    lane.peers &= set ? with : ~with;
  }
  return lane;
}

/// counts[w][d]: how many elements of warp w's run have digit d.
__device__ __forceinline__ void count_digits(const std::int32_t* rows, int count, int shift,
                                             int (&counts)[kWarps][kDigits]) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp, lane = thread % kWarp;
  for (int w = 0; w < kWarps; ++w) counts[w][thread] = 0;
  __syncthreads();
  for (int round = 0; round < kRounds; ++round) {
    const Lane own = lane_of(rows, count, shift, round);
    if (own.valid && __ffs(static_cast<int>(own.peers)) - 1 == lane)
      counts[warp][own.digit] += __popc(own.peers);
    __syncwarp();
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads)
    count_tile(const std::int32_t* rows, int count, int shift, int* tile_counts) {
  __shared__ int counts[kWarps][kDigits];
  count_digits(rows, count, shift, counts);
  int total = 0;
  for (int w = 0; w < kWarps; ++w) total += counts[w][threadIdx.x];
  tile_counts[blockIdx.x * kDigits + threadIdx.x] = total;
}

/// tile_counts[t][d] becomes the place of tile t's first element with digit d. One block.
__global__ void __launch_bounds__(kThreads) place_tiles(int* tile_counts, int tiles) {
  __shared__ int totals[kDigits];
  const int digit = static_cast<int>(threadIdx.x);
  int total = 0;
#pragma unroll 4
  for (int t = 0; t < tiles; ++t) total += tile_counts[t * kDigits + digit];
  totals[digit] = total;
  __syncthreads();
  int place = 0;
  for (int d = 0; d < digit; ++d) place += totals[d];
#pragma unroll 4
  for (int t = 0; t < tiles; ++t) {
    const int own = tile_counts[t * kDigits + digit];
    tile_counts[t * kDigits + digit] = place;
    place += own;
  }
}

__global__ void __launch_bounds__(kThreads)
    move_tile(const std::int32_t* rows, const std::int32_t* positions, int count, int shift,
              const int* tile_places, std::int32_t* rows_out, std::int32_t* positions_out) {
  __shared__ int places[kWarps][kDigits];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp, lane = thread % kWarp;
  count_digits(rows, count, shift, places);
  int place = tile_places[blockIdx.x * kDigits + threadIdx.x];
  for (int w = 0; w < kWarps; ++w) place += std::exchange(places[w][thread], place);
  __syncthreads();
  for (int round = 0; round < kRounds; ++round) {
    const Lane own = lane_of(rows, count, shift, round);
    if (own.valid) {
      const int to = places[warp][own.digit] + __popc(own.peers & ((1U << lane) - 1U));
      rows_out[to] = rows[own.at];
      positions_out[to] = positions[own.at];
    }
    __syncwarp();
    if (own.valid && __ffs(static_cast<int>(own.peers)) - 1 == lane)
      places[warp][own.digit] += __popc(own.peers);
    __syncwarp();
  }
}

}  // namespace

SortedIds sort_ids(Device& device, Queue& queue, const ConstTensorView& ids, index_t row0,
                   index_t rows) {
  const index_t length = ids.cols;
  T3D_CHECK(length < index_t{1} << 31 && rows < index_t{1} << 31, "{} ids for {} rows", length,
            rows);
  const auto make = [&](index_t n) {
    return Tensor(device, DType::i32, 1, n, MemoryKind::workspace);
  };
  SortedIds now{make(length), make(length)}, next{make(length), make(length)};
  const auto data = [](const Tensor& tensor) { return tensor.view().as<std::int32_t>(); };
  const auto count = static_cast<int>(length);
  LaunchShape shape;
  shape.threads = kThreads;
  shape.blocks_x = blocks_for(length, kThreads);
  launch(queue, shape, rows_of_ids, ids.as<std::int32_t>(), row0, rows, count, data(now.rows),
         data(now.positions));
  const index_t tiles = blocks_for(length, kTile);
  const Tensor places = make(tiles * kDigits);
  LaunchShape one = shape;
  one.blocks_x = tiles > 0 ? 1 : 0;
  shape.blocks_x = tiles;
  for (int shift = 0; shift < 31 && rows >> shift > 0; shift += kDigitBits) {
    launch(queue, shape, count_tile, data(now.rows), count, shift, data(places));
    launch(queue, one, place_tiles, data(places), static_cast<int>(tiles));
    launch(queue, shape, move_tile, data(now.rows), data(now.positions), count, shift, data(places),
           data(next.rows), data(next.positions));
    std::swap(now, next);
  }
  return now;
}

}  // namespace t3d::cuda
