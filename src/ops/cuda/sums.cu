// Sums. column_sums: two kernels (columns.cuh), one pass over x with four rows in flight per
// thread. sum and sum_squares: every block adds one fixed chunk of the memory in fp64 (a GPU of the
// Hopper class adds fp64 at half the rate of fp32, far above what memory delivers), the last kernel
// adds the chunks' sums; all in an order that depends on the length alone. Bytes per element: the
// size of one number. Speed not measured.
#include "ops/cuda/columns.cuh"
#include "ops/cuda/cuda_ops.hpp"

namespace t3d::cuda {
namespace {

constexpr int kRowsInFlight = 4, kInFlight = 4;

template <int N, class T>
__global__ void __launch_bounds__(kElementThreads, 2)
    column_partials(Matrix<const T> x, index_t rows, int cols, float* partial) {
  __shared__ float shared[kElementThreads * N];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int col = (static_cast<int>(blockIdx.x) * kWarp + lane) * N;
  float sum[N] = {};
  if (col < cols)
    down_rows<kRowsInFlight, Elements<T, N>>(
        blockIdx.y * index_t{kElementWarps} + threadIdx.x / kWarp, rows,
        gridDim.y * index_t{kElementWarps},
        [&](Elements<T, N>& item, index_t row) { item.load(x.at(row, col)); },
        [&](Elements<T, N>& item, index_t) {
#pragma unroll
          for (int i = 0; i < N; ++i) sum[i] += item[i];
        });
  store_column_sums(sum, shared, partial, cols);
}

template <int N, class T>
void run_column_sums(Device& device, Queue& queue, const ConstTensorView& x, float* out) {
  const ColumnGrid grid = column_grid(x.rows, x.cols, N);
  const Tensor partial(device, DType::f32, grid.shares, x.cols, MemoryKind::workspace);
  LaunchShape shape;
  shape.threads = kElementThreads;
  shape.blocks_x = grid.tiles, shape.blocks_y = grid.shares;
  launch(queue, shape, column_partials<N, T>, matrix_of<T>(x), x.rows, static_cast<int>(x.cols),
         partial.view().as<float>());
  add_partials(queue, partial, grid.shares, out, nullptr);
}

constexpr index_t kChunk = 1 << 14;  // numbers; part of the result, not a tuning knob

template <int N, bool squares, class T>
__global__ void __launch_bounds__(kElementThreads)
    chunk_sums(const T* x, index_t count, double* partial) {
  __shared__ double shared[kWarp];
  const index_t from = blockIdx.x * kChunk;
  const int length = static_cast<int>(min(kChunk, count - from));
  double total = 0;
  const auto add = [&](float value) {
    const auto wide = static_cast<double>(value);
    total += squares ? wide * wide : wide;
  };
  const int whole = length / N;
  for (int first = static_cast<int>(threadIdx.x); first < whole;
       first += kInFlight * kElementThreads) {
    Elements<T, N> item[kInFlight];
#pragma unroll
    for (int p = 0; p < kInFlight; ++p) {
      item[p].clear();
      const int pack = first + p * kElementThreads;
      if (pack < whole) item[p].load(x + from + pack * N);
    }
#pragma unroll
    for (int p = 0; p < kInFlight; ++p)
#pragma unroll
      for (int i = 0; i < N; ++i) add(item[p][i]);
  }
  if (const int rest = whole * N + static_cast<int>(threadIdx.x); rest < length)
    add(to_float(x[from + rest]));
  total = block_sum(total, shared);
  if (threadIdx.x == 0) partial[blockIdx.x] = total;
}

__global__ void __launch_bounds__(kElementThreads)
    add_chunk_sums(const double* partial, int chunks, double* result) {
  __shared__ double shared[kWarp];
  double total = 0;
#pragma unroll 4
  for (int c = static_cast<int>(threadIdx.x); c < chunks; c += kElementThreads) total += partial[c];
  total = block_sum(total, shared);
  if (threadIdx.x == 0) *result += total;
}

template <bool squares>
void add_sum(Device& device, Queue& queue, const ConstTensorView& x, const TensorView& result) {
  if (x.empty()) return;
  const index_t chunks = blocks_for(x.count(), kChunk);
  const Tensor partial(device, DType::f64, 1, chunks, MemoryKind::workspace);
  auto* sums = partial.view().as<double>();
  LaunchShape shape;
  shape.threads = kElementThreads;
  shape.blocks_x = chunks;
  visit_activation(x.dtype, [&]<class T>(T) {
    const bool packs = fits_packs(x.flat(), kPack<T>);
    launch(queue, shape, packs ? chunk_sums<kPack<T>, squares, T> : chunk_sums<1, squares, T>,
           x.as<T>(), x.count(), sums);
  });
  shape.blocks_x = 1;
  launch(queue, shape, add_chunk_sums, sums, static_cast<int>(chunks), result.as<double>());
}

}  // namespace

void CudaOps::column_sums(Queue& queue, ConstTensorView x, TensorView out) {
  if (x.empty()) return;
  visit_activation(x.dtype, [&]<class T>(T) {
    if (fit_whole_packs({x}, x.cols, kPack<T>))
      run_column_sums<kPack<T>, T>(device_, queue, x, out.as<float>());
    else
      run_column_sums<1, T>(device_, queue, x, out.as<float>());
  });
}

void CudaOps::sum_squares(Queue& queue, ConstTensorView x, TensorView result) {
  add_sum<true>(device_, queue, x, result);
}

void CudaOps::sum(Queue& queue, ConstTensorView x, TensorView result) {
  add_sum<false>(device_, queue, x, result);
}

}  // namespace t3d::cuda
