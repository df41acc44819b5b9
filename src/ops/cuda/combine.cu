// The sum of rows with coefficients from device memory, segment by segment: one pass, n rows in,
// one out, in 16-byte packs of the narrower format; four rows of a pack are in flight per thread. A
// block first lists the rows whose coefficient is not 0, so that the others are neither moved nor
// looked at. Sums in fp64 in the order of rows, rounded
// once: coefficients of opposite gradients are large, and what is left of them small. Bytes per
// column, with k rows that count: k s + s', s and s' the sizes of the two formats. Speed not
// measured.
#include "ops/cuda/cuda_ops.hpp"
#include "ops/cuda/segments.cuh"

namespace t3d::cuda {
namespace {

constexpr int kInFlight = 4;

/// The rows that count and their coefficients, in order.
struct LiveRows {
  double factor[kMostRows];
  int row[kMostRows];
  int count;
};

/// All threads of the block.
__device__ __forceinline__ void list_live_rows(const double* coefficients, int rows,
                                               LiveRows& live) {
  if (const int lane = static_cast<int>(threadIdx.x); lane < kWarp) {
    int count = 0;
#pragma unroll
    for (int first = 0; first < kMostRows; first += kWarp) {
      const int row = first + lane;
      const double factor = row < rows ? coefficients[row] : 0.0;
      const unsigned counting = __ballot_sync(kAllLanes, factor != 0);
      if (factor != 0) {
        const int place = count + __popc(counting & ((1U << lane) - 1));
        live.factor[place] = factor;
        live.row[place] = row;
      }
      count += __popc(counting);
    }
    if (lane == 0) live.count = count;
  }
  __syncthreads();
}

template <class From, class To>
inline constexpr int kCombineWidth = kPack<From> > kPack<To> ? kPack<From> : kPack<To>;

template <class From, class To>
__device__ __forceinline__ void combine_pack(const LiveRows& live, const Matrix<const From>& x,
                                             To* out, index_t col) {
  constexpr int N = kCombineWidth<From, To>;
  double sum[N] = {};
#pragma unroll 1
  for (int first = 0; first < live.count; first += kInFlight) {
    Elements<From, N> item[kInFlight];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k)
      if (first + k < live.count) item[k].load(x.at(live.row[first + k], col));
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      if (first + k >= live.count) continue;
      const double factor = live.factor[first + k];
#pragma unroll
      for (int i = 0; i < N; ++i) sum[i] += factor * static_cast<double>(item[k][i]);
    }
  }
  float rounded[N];
#pragma unroll
  for (int i = 0; i < N; ++i) rounded[i] = static_cast<float>(sum[i]);
  Elements<To, N> result;
  result.assign(rounded);
  result.store(out + col);
}

template <class From, class To>
__global__ void __launch_bounds__(kElementThreads, 3)
    combine_rows(const __grid_constant__ SegmentTable table, Matrix<const From> x, int rows,
                 Matrix<const double> coefficients, To* out, bool packs) {
  constexpr int N = kCombineWidth<From, To>;
  __shared__ LiveRows live;
  const Chunk chunk = chunk_at(table, static_cast<int>(blockIdx.x));
  list_live_rows(coefficients.at(table.group[chunk.segment], 0), rows, live);
#pragma unroll 1
  for (index_t col = chunk.base + static_cast<int>(threadIdx.x) * N; col < chunk.to;
       col += kElementThreads * N) {
    if (packs && chunk.holds_pack<N>(col)) {
      combine_pack(live, x, out, col);
      continue;
    }
#pragma unroll 1
    for (int i = 0; i < N; ++i) {
      if (!chunk.holds(col + i)) continue;
      double sum = 0;
#pragma unroll 4
      for (int k = 0; k < live.count; ++k)
        sum += live.factor[k] * static_cast<double>(to_float(*x.at(live.row[k], col + i)));
      out[col + i] = from_float<To>(static_cast<float>(sum));
    }
  }
}

template <class From, class To>
void run_combine(Queue& queue, const SegmentTable& table, const ConstTensorView& x,
                 const ConstTensorView& coefficients, const TensorView& out) {
  LaunchShape shape;
  shape.threads = kElementThreads;
  shape.blocks_x = table.first_chunk[table.count];
  launch(queue, shape, combine_rows<From, To>, table, matrix_of<From>(x), static_cast<int>(x.rows),
         matrix_of<double>(coefficients), out.as<To>(),
         fit_packs({x, out}, kCombineWidth<From, To>));
}

}  // namespace

void CudaOps::combine(Queue& queue, ConstTensorView x, std::span<const Segment> segments,
                      ConstTensorView coefficients, TensorView out) {
  T3D_CHECK(x.rows <= kMostRows, "a combination of {} rows", x.rows);
  each_segment_table(segments, [&](const SegmentTable& table) {
    visit_activation(x.dtype, [&]<class From>(From) {
      visit_activation(out.dtype, [&]<class To>(To) {
        run_combine<From, To>(queue, table, x, coefficients, out);
      });
    });
  });
}

}  // namespace t3d::cuda
