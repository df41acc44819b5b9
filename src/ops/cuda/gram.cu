// Gram matrices: all n(n+1)/2 scalar products of n rows over the columns of each segment, in one
// pass over x. fp64 sums (a GPU of the Hopper class multiplies fp64 at half the rate of fp32), two
// kernels, no atomics: every block adds one chunk of columns, the last kernel adds the chunks of a
// segment and then the segments of a group, all in orders that the segments alone fix.
// - n <= 8: a thread holds all products of its columns in registers (36 sums for n = 8) and loads
//   one pack of 16 bytes of every row before it multiplies; three blocks of 128 threads have 48 KB
//   in flight per multiprocessor.
// - n > 8: a block brings 64 columns of all rows into shared memory as fp64; a thread has a tile of
//   4 x 4 products, and the threads that are left over share the columns out.
// Bytes per column: n times the size of a number. Speed not measured.
#include "ops/adasum_tree.hpp"
#include "ops/cuda/cuda_ops.hpp"
#include "ops/cuda/ptx.cuh"
#include "ops/cuda/segments.cuh"

namespace t3d::cuda {
namespace {

constexpr int kFewRows = 8, kFewThreads = 128, kFewWarps = kFewThreads / kWarp;

/// The products of one column, added to the packed upper triangle.
template <int kRows, int kSums>
__device__ __forceinline__ void add_products(const double (&column)[kRows], double (&sum)[kSums]) {
  int at = 0;
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int j = i; j < kRows; ++j) sum[at++] += column[i] * column[j];
}

/// Eight sums over a warp at once: each exchange also halves how many sums a lane is in charge of.
/// Lane 4 s has the sum s.
__device__ __forceinline__ double eight_warp_sums(const double* value) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  double kept[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) kept[i] = value[i];
#pragma unroll
  for (int half = 4; half > 0; half /= 2) {
    const bool upper = (lane & (4 * half)) != 0;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const double mine = upper ? kept[i + half] : kept[i];
      kept[i] = mine + __shfl_xor_sync(kAllLanes, upper ? kept[i] : kept[i + half], 4 * half);
    }
  }
#pragma unroll
  for (int distance = 2; distance > 0; distance /= 2)
    kept[0] += __shfl_xor_sync(kAllLanes, kept[0], distance);
  return kept[0];
}

/// partial [pairs, chunks].
template <int kRows, class T>
__global__ void __launch_bounds__(kFewThreads, kRows > 4 ? 3 : 8)
    gram_of_few(const __grid_constant__ SegmentTable table, Matrix<const T> x, bool packs,
                double* partial) {
  constexpr int kPairs = kRows * (kRows + 1) / 2, kSums = (kPairs + 7) / 8 * 8, kWidth = kPack<T>;
  __shared__ double shared[kFewWarps * kSums];
  const int thread = static_cast<int>(threadIdx.x);
  const Chunk chunk = chunk_at(table, static_cast<int>(blockIdx.x));
  double sum[kSums] = {};
#pragma unroll 1
  for (index_t col = chunk.base + thread * kWidth; col < chunk.to; col += kFewThreads * kWidth) {
    double column[kRows];
    if (packs && chunk.holds_pack<kWidth>(col)) {
      Elements<T, kWidth> item[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) item[r].load(x.at(r, col));
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) column[r] = static_cast<double>(item[r][i]);
        add_products(column, sum);
      }
      continue;
    }
#pragma unroll 1
    for (int i = 0; i < kWidth; ++i) {
      if (!chunk.holds(col + i)) continue;
#pragma unroll
      for (int r = 0; r < kRows; ++r) column[r] = static_cast<double>(to_float(*x.at(r, col + i)));
      add_products(column, sum);
    }
  }
#pragma unroll
  for (int first = 0; first < kSums; first += 8) {
    const double total = eight_warp_sums(sum + first);
    if (thread % 4 == 0) shared[thread / kWarp * kSums + first + thread % kWarp / 4] = total;
  }
  __syncthreads();
  if (thread >= kPairs) return;
  double total = 0;
#pragma unroll
  for (int w = 0; w < kFewWarps; ++w) total += shared[w * kSums + thread];
  partial[thread * static_cast<index_t>(gridDim.x) + blockIdx.x] = total;
}

constexpr int kManyThreads = 256, kTile = 4, kStage = 64;

/// Numbers from column to column of a stage: even for 16-byte loads, with few conflicts of banks.
[[nodiscard]] constexpr __host__ __device__ int stage_stride(int rows) {
  return (rows + kTile - 1) / kTile * kTile + 2;
}

/// Which 4 x 4 products a thread adds, and over which columns of a stage: group, group + groups..
struct TileShare {
  int row, col;  // first rows of the two factors, row <= col
  int pair, pairs;
  int group, groups;
};
[[nodiscard]] __device__ __forceinline__ TileShare tile_share(int rows) {
  const int tiles = (rows + kTile - 1) / kTile, pairs = tiles * (tiles + 1) / 2;
  const int thread = static_cast<int>(threadIdx.x);
  int row = 0, rest = thread % pairs;
  for (; rest >= tiles - row; ++row) rest -= tiles - row;
  return {row * kTile, (row + rest) * kTile, thread % pairs,
          pairs,       thread / pairs,       kManyThreads / pairs};
}

__device__ __forceinline__ void add_tile(const double* column, const TileShare& share,
                                         double (&sum)[kTile * kTile]) {
  double a[kTile], b[kTile];
#pragma unroll
  for (int i = 0; i < kTile; i += 2) {
    const auto two_a = *reinterpret_cast<const Pack<double, 2>*>(column + share.row + i);
    const auto two_b = *reinterpret_cast<const Pack<double, 2>*>(column + share.col + i);
    a[i] = two_a.value[0], a[i + 1] = two_a.value[1];
    b[i] = two_b.value[0], b[i + 1] = two_b.value[1];
  }
#pragma unroll
  for (int i = 0; i < kTile; ++i)
#pragma unroll
    for (int j = 0; j < kTile; ++j) sum[i * kTile + j] += a[i] * b[j];
}

template <class T>
__global__ void __launch_bounds__(kManyThreads)
    gram_of_many(const __grid_constant__ SegmentTable table, Matrix<const T> x, int rows,
                 double* partial) {
  auto* shared = ptx::shared_memory<double>();  // [kStage, stride]
  const int thread = static_cast<int>(threadIdx.x);
  const Chunk chunk = chunk_at(table, static_cast<int>(blockIdx.x));
  const TileShare share = tile_share(rows);
  const int stride = stage_stride(rows);
  double sum[kTile * kTile] = {};
#pragma unroll 1
  for (index_t base = chunk.from / kStage * kStage; base < chunk.to; base += kStage) {
    __syncthreads();
#pragma unroll 4
    for (int at = thread; at < stride * kStage; at += kManyThreads) {
      const int r = at / kStage, c = at % kStage;
      const bool there = r < rows && chunk.holds(base + c);
      shared[c * stride + r] = there ? static_cast<double>(to_float(*x.at(r, base + c))) : 0.0;
    }
    __syncthreads();
    if (share.group >= share.groups) continue;
#pragma unroll 2
    for (int c = share.group; c < kStage; c += share.groups)
      add_tile(shared + c * stride, share, sum);
  }
  // Each group adds its sums to those of the groups before it.
#pragma unroll 1
  for (int group = 0; group < share.groups; ++group) {
    __syncthreads();
    if (share.group != group) continue;
#pragma unroll
    for (int k = 0; k < kTile * kTile; ++k) {
      double& total = shared[k * share.pairs + share.pair];
      if (group > 0) sum[k] += total;
      total = sum[k];
    }
  }
  if (share.group != share.groups - 1) return;
#pragma unroll
  for (int k = 0; k < kTile * kTile; ++k) {
    const int i = share.row + k / kTile, j = share.col + k % kTile;
    if (i <= j && j < rows)
      partial[(i * rows - i * (i - 1) / 2 + j - i) * static_cast<index_t>(gridDim.x) + blockIdx.x] =
          sum[k];
  }
}

constexpr int kFinishWarps = kElementWarps;

/// A warp per product and group: the block of a group's first segment adds all its segments.
__global__ void __launch_bounds__(kElementThreads)
    add_gram_partials(const __grid_constant__ SegmentTable table, const double* partial, int pairs,
                      Matrix<double> gram) {
  const int first = static_cast<int>(blockIdx.x), group = table.group[first];
  for (int s = 0; s < first; ++s)
    if (table.group[s] == group) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int pair =
      static_cast<int>(blockIdx.y) * kFinishWarps + static_cast<int>(threadIdx.x) / kWarp;
  if (pair >= pairs) return;
  partial += pair * static_cast<index_t>(table.first_chunk[table.count]);
  double total = *gram.at(group, pair);
  for (int s = first; s < table.count; ++s) {
    if (table.group[s] != group) continue;
    double sum = 0;
#pragma unroll 4
    for (int c = table.first_chunk[s] + lane; c < table.first_chunk[s + 1]; c += kWarp)
      sum += partial[c];
    total += warp_sum(sum);
  }
  __syncwarp();  // before lane 0 writes, all have read
  if (lane == 0) *gram.at(group, pair) = total;
}

template <class T, int kRows = kFewRows>
void launch_few(Queue& queue, LaunchShape shape, const SegmentTable& table,
                const ConstTensorView& x, double* partial) {
  if constexpr (kRows > 1)
    if (x.rows < kRows) return launch_few<T, kRows - 1>(queue, shape, table, x, partial);
  shape.threads = kFewThreads;
  launch(queue, shape, gram_of_few<kRows, T>, table, matrix_of<T>(x), fits_packs(x, kPack<T>),
         partial);
}

}  // namespace

void CudaOps::gram(Queue& queue, ConstTensorView x, std::span<const Segment> segments,
                   TensorView gram) {
  T3D_CHECK(x.rows <= kMostRows, "a Gram matrix of {} rows", x.rows);
  if (x.rows == 0) return;
  const index_t pairs = adasum::packed_size(x.rows);
  each_segment_table(segments, [&](const SegmentTable& table) {
    LaunchShape shape;
    shape.blocks_x = table.first_chunk[table.count];
    const Tensor partials(device_, DType::f64, pairs, shape.blocks_x, MemoryKind::workspace);
    auto* partial = partials.view().as<double>();
    visit_activation(x.dtype, [&]<class T>(T) {
      if (x.rows <= kFewRows) return launch_few<T>(queue, shape, table, x, partial);
      shape.threads = kManyThreads;
      shape.shared_bytes = kStage * stage_stride(static_cast<int>(x.rows)) * size_of(DType::f64);
      launch(queue, shape, gram_of_many<T>, table, matrix_of<T>(x), static_cast<int>(x.rows),
             partial);
    });
    LaunchShape finish;
    finish.threads = kElementThreads;
    finish.blocks_x = table.count;
    finish.blocks_y = blocks_for(pairs, kFinishWarps);
    launch(queue, finish, add_gram_partials, table, partial, static_cast<int>(pairs),
           matrix_of<double>(gram));
  });
}

}  // namespace t3d::cuda
