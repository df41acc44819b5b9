// Layer and RMS normalisation, forward: statistics of a row's local columns, their merge over the
// parts of the hidden dimension, and the normalised rows. Three verbs, as messages may pass between
// the first two.
// - norm_stats, a warp per row (up to 1024 columns): the row stays in registers, 32 numbers per
//   thread, so that memory is read once and the sum of squares is still taken around the mean.
// - norm_stats, a block per row (beyond): the same over up to 512 threads; rows longer than 16384
//   go through in slices that Chan's rule merges.
// - norm_apply: a thread keeps its columns' gamma and beta in registers over 16 rows (they are
// fp32,
//   so re-reading them for every row would be four times the traffic of the row in 16 bits, if only
//   from the cache), four rows in flight.
// Bytes per element, with s the size of T: stats s, apply 2s. Speed not measured.
#include "ops/cuda/cuda_ops.hpp"
#include "ops/cuda/elements.cuh"

namespace t3d::cuda {
namespace {

constexpr int kHeld = 32;  // numbers of a row per thread
constexpr int kRowWarps = 8, kMaxRowThreads = 512;

template <int N, bool warp_row, class T>
__global__ void __launch_bounds__(warp_row ? kRowWarps* kWarp : kMaxRowThreads)
    row_stats(Matrix<const T> x, index_t rows, int cols, bool layer, Matrix<float> stats) {
  __shared__ float shared[kWarp];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const index_t row = warp_row ? blockIdx.x * index_t{kRowWarps} + threadIdx.x / kWarp : blockIdx.x;
  if (row >= rows) return;
  const int threads = warp_row ? kWarp : static_cast<int>(blockDim.x);
  const int thread = warp_row ? lane : static_cast<int>(threadIdx.x);
  float count = 0, mean = 0, m2 = 0;
  for (int first = 0; first < cols; first += threads * kHeld) {
    Elements<T, N> held[kHeld / N];
    const int n = min(cols - first, threads * kHeld);
    float sum = 0, squares = 0;
#pragma unroll
    for (int p = 0; p < kHeld / N; ++p) {
      const int col = (p * threads + thread) * N;
      if (col < n)
        held[p].load(x.at(row, first + col));
      else
        held[p].clear();
    }
#pragma unroll
    for (int p = 0; p < kHeld / N; ++p)
#pragma unroll
      for (int i = 0; i < N; ++i) sum += held[p][i];
    const float centre = layer ? row_sum<warp_row>(sum, shared) / static_cast<float>(n) : 0.0F;
#pragma unroll
    for (int p = 0; p < kHeld / N; ++p) {
      const bool here = (p * threads + thread) * N < n;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const float distance = here ? held[p][i] - centre : 0.0F;
        squares += distance * distance;
      }
    }
    squares = row_sum<warp_row>(squares, shared);
    const float part = static_cast<float>(n), delta = centre - mean;
    m2 += squares + delta * delta * (count * part / (count + part));
    mean += delta * (part / (count + part));
    count += part;
  }
  if (thread == 0) *stats.at(row, 0) = count, *stats.at(row, 1) = mean, *stats.at(row, 2) = m2;
}

template <int N, class T>
void run_row_stats(Queue& queue, bool layer, const ConstTensorView& x, const TensorView& stats) {
  LaunchShape shape;
  const auto cols = static_cast<int>(x.cols);
  if (cols <= kWarp * kHeld) {
    shape.threads = kRowWarps * kWarp;
    shape.blocks_x = blocks_for(x.rows, kRowWarps);
    launch(queue, shape, row_stats<N, true, T>, matrix_of<T>(x), x.rows, cols, layer,
           matrix_of<float>(stats));
  } else {
    const index_t threads = blocks_for(cols, kWarp * kHeld) * kWarp;
    shape.threads = static_cast<int>(std::min<index_t>(threads, kMaxRowThreads));
    shape.blocks_x = x.rows;
    launch(queue, shape, row_stats<N, false, T>, matrix_of<T>(x), x.rows, cols, layer,
           matrix_of<float>(stats));
  }
}

__global__ void merge_stats(Matrix<const float> stats, index_t rows, int parts, bool layer,
                            float eps, Matrix<float> moments) {
  const index_t row = blockIdx.x * index_t{blockDim.x} + threadIdx.x;
  if (row >= rows) return;
  float count = 0, mean = 0, m2 = 0;
  for (int p = 0; p < parts; ++p) {
    const float* part = stats.at(p * rows + row, 0);
    const float n = part[0];
    if (n == 0.0F) continue;
    const float delta = layer ? part[1] - mean : 0.0F;
    m2 += part[2] + delta * delta * (count * n / (count + n));
    mean += delta * (n / (count + n));
    count += n;
  }
  *moments.at(row, 0) = mean;
  *moments.at(row, 1) = count > 0.0F ? 1.0F / sqrtf(m2 / count + eps) : 0.0F;
}

constexpr int kApplyRows = 16, kRowsInFlight = 4;

template <class T>
struct ApplyArgs {
  Matrix<const T> x;
  Matrix<const float> moments;
  const float *gamma, *beta;  // beta may be null
  Matrix<T> y;
  index_t rows;
  int cols;
};

template <int N, class T>
__global__ void __launch_bounds__(kElementThreads) apply_norm(ApplyArgs<T> a) {
  struct Row {
    Elements<T, N> x;
    float mean, rstd;
  };
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int col = (static_cast<int>(blockIdx.x) * kWarp + lane) * N;
  if (col >= a.cols) return;
  Elements<float, N> gamma, beta;
  gamma.load(a.gamma + col);
  beta.clear();
  if (a.beta != nullptr) beta.load(a.beta + col);
  constexpr index_t kTile = kElementWarps * kApplyRows;
  for (index_t tile = blockIdx.y * kTile; tile < a.rows; tile += gridDim.y * kTile)
    down_rows<kRowsInFlight, Row>(
        tile + threadIdx.x / kWarp, min(tile + kTile, a.rows), kElementWarps,
        [&](Row& item, index_t row) {
          item.x.load(a.x.at(row, col));
          item.mean = *a.moments.at(row, 0), item.rstd = *a.moments.at(row, 1);
        },
        [&](Row& item, index_t row) {
          float y[N];
#pragma unroll
          for (int i = 0; i < N; ++i)
            y[i] = (item.x[i] - item.mean) * item.rstd * gamma[i] + beta[i];
          item.x.assign(y);
          item.x.store(a.y.at(row, col));
        });
}

template <int N, class T>
void run_apply_norm(Queue& queue, const ApplyArgs<T>& args) {
  LaunchShape shape;
  shape.threads = kElementThreads;
  shape.blocks_x = blocks_for(args.cols, kWarp * N);
  shape.blocks_y = std::min<index_t>(65535, blocks_for(args.rows, kElementWarps * kApplyRows));
  launch(queue, shape, apply_norm<N, T>, args);
}

}  // namespace

void CudaOps::norm_stats(Queue& queue, NormKind kind, ConstTensorView x, TensorView stats) {
  visit_activation(x.dtype, [&]<class T>(T) {
    const bool layer = kind == NormKind::layer;
    if (fit_whole_packs({x}, x.cols, kPack<T>))
      run_row_stats<kPack<T>, T>(queue, layer, x, stats);
    else
      run_row_stats<1, T>(queue, layer, x, stats);
  });
}

void CudaOps::norm_merge(Queue& queue, NormKind kind, ConstTensorView stats, index_t parts,
                         double eps, TensorView moments) {
  LaunchShape shape;
  shape.blocks_x = blocks_for(moments.rows, shape.threads);
  launch(queue, shape, merge_stats, matrix_of<float>(stats), moments.rows, static_cast<int>(parts),
         kind == NormKind::layer, static_cast<float>(eps), matrix_of<float>(moments));
}

void CudaOps::norm_apply(Queue& queue, ConstTensorView x, ConstTensorView moments,
                         ConstTensorView gamma, ConstTensorView beta, TensorView y) {
  visit_activation(x.dtype, [&]<class T>(T) {
    const ApplyArgs<T> args{matrix_of<T>(x),         matrix_of<float>(moments), gamma.as<float>(),
                            beta.as<float>(),        matrix_of<T>(y),           y.rows,
                            static_cast<int>(y.cols)};
    if (fit_whole_packs({x, y, gamma, beta}, y.cols, kPack<T>))
      run_apply_norm<kPack<T>>(queue, args);
    else
      run_apply_norm<1>(queue, args);
  });
}

}  // namespace t3d::cuda
