// Layer and RMS normalisation, backward.
// - norm_backward_stats: a warp per row up to 2048 columns, a block beyond; two sums in one pass
//   over dy and x, four packs of both in flight per thread.
// - norm_backward_apply: dx and the column sums of dgamma and dbeta in ONE pass over dy and x
//   (columns.cuh). A lane owns 16 bytes of columns: gamma and the two running sums stay in
//   registers, while the warp goes down its rows, two at a time. Two passes (dx by rows, dgamma and
//   dbeta by columns) would move 5 instead of 3 numbers per element.
// Bytes per element, with s the size of T: stats 2s; apply 3s, 4s where dx accumulates. Speed not
// measured.
#include "ops/cuda/columns.cuh"
#include "ops/cuda/cuda_ops.hpp"

namespace t3d::cuda {
namespace {

constexpr int kWarpRowCols = 2048, kInFlight = 4, kRowsInFlight = 2;

template <int N, bool warp_row, class T>
__global__ void __launch_bounds__(kElementThreads, 3)  // else loads are put off to save registers
    backward_stats(Matrix<const T> dy, Matrix<const T> x, Matrix<const float> moments,
                   const float* gamma, index_t rows, int cols, Matrix<float> sums) {
  __shared__ float shared[kWarp];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const index_t row =
      warp_row ? blockIdx.x * index_t{kElementWarps} + threadIdx.x / kWarp : blockIdx.x;
  if (row >= rows) return;
  const int threads = warp_row ? kWarp : kElementThreads;
  const int thread = warp_row ? lane : static_cast<int>(threadIdx.x);
  const float mean = *moments.at(row, 0), rstd = *moments.at(row, 1);
  float sum = 0, slope = 0;
  for (int first = thread * N; first < cols; first += kInFlight * threads * N) {
    Elements<T, N> d[kInFlight], v[kInFlight];
#pragma unroll
    for (int p = 0; p < kInFlight; ++p) {
      const int col = first + p * threads * N;
      d[p].clear(), v[p].clear();
      if (col < cols) d[p].load(dy.at(row, col)), v[p].load(x.at(row, col));
    }
#pragma unroll
    for (int p = 0; p < kInFlight; ++p) {
      const int col = first + p * threads * N;
      Elements<float, N> g;
      g.clear();
      if (col < cols) g.load(gamma + col);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const float grad = d[p][i] * g[i];
        sum += grad;
        slope += grad * ((v[p][i] - mean) * rstd);
      }
    }
  }
  sum = row_sum<warp_row>(sum, shared);
  slope = row_sum<warp_row>(slope, shared);
  if (thread == 0) *sums.at(row, 0) = sum, *sums.at(row, 1) = slope;
}

template <class T>
struct BackwardArgs {
  Matrix<const T> dy, x;
  Matrix<const float> moments;
  const float* gamma;
  Matrix<const float> sums;
  Matrix<T> dx;
  index_t rows;
  int cols;
  float centre_factor, slope_factor;  // 1/length; for rms the first is 0
  bool accumulate;
  float* partial;  // [2, shares, cols]: dgamma, dbeta
};

template <int N, class T>
struct BackwardRow {
  Elements<T, N> dy, x, dx;
  float mean, rstd, centre, slope;

  __device__ __forceinline__ void load(const BackwardArgs<T>& a, index_t row, int col) {
    dy.load(a.dy.at(row, col));
    x.load(a.x.at(row, col));
    dx.clear();
    if (a.accumulate) dx.load(a.dx.at(row, col));
    mean = *a.moments.at(row, 0), rstd = *a.moments.at(row, 1);
    centre = *a.sums.at(row, 0) * a.centre_factor;
    slope = *a.sums.at(row, 1) * a.slope_factor;
  }
  __device__ __forceinline__ void finish(const BackwardArgs<T>& a, index_t row, int col,
                                         const Elements<float, N>& gamma, float (&dgamma)[N],
                                         float (&dbeta)[N]) {
    float out[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float d = dy[i], xhat = (x[i] - mean) * rstd;
      out[i] = dx[i] + rstd * (d * gamma[i] - centre - xhat * slope);
      dgamma[i] += d * xhat;
      dbeta[i] += d;
    }
    dx.assign(out);
    dx.store(a.dx.at(row, col));
  }
};

template <int N, class T>
__global__ void __launch_bounds__(kElementThreads, 2) backward_apply(BackwardArgs<T> a) {
  using Row = BackwardRow<N, T>;
  __shared__ float shared[kElementThreads * N];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int col = (static_cast<int>(blockIdx.x) * kWarp + lane) * N;
  float dgamma[N] = {}, dbeta[N] = {};
  if (col < a.cols) {
    Elements<float, N> gamma;
    gamma.load(a.gamma + col);
    down_rows<kRowsInFlight, Row>(
        blockIdx.y * index_t{kElementWarps} + threadIdx.x / kWarp, a.rows,
        gridDim.y * index_t{kElementWarps}, [&](Row& item, index_t row) { item.load(a, row, col); },
        [&](Row& item, index_t row) { item.finish(a, row, col, gamma, dgamma, dbeta); });
  }
  if (a.partial == nullptr) return;
  store_column_sums(dgamma, shared, a.partial, a.cols);
  store_column_sums(dbeta, shared, a.partial + gridDim.y * static_cast<index_t>(a.cols), a.cols);
}

template <int N, class T>
void run_backward_stats(Queue& queue, const ConstTensorView& dy, const ConstTensorView& x,
                        const ConstTensorView& moments, const ConstTensorView& gamma,
                        const TensorView& sums) {
  LaunchShape shape;
  shape.threads = kElementThreads;
  const bool warp_row = x.cols <= kWarpRowCols;
  shape.blocks_x = warp_row ? blocks_for(x.rows, kElementWarps) : x.rows;
  launch(queue, shape, warp_row ? backward_stats<N, true, T> : backward_stats<N, false, T>,
         matrix_of<T>(dy), matrix_of<T>(x), matrix_of<float>(moments), gamma.as<float>(), x.rows,
         static_cast<int>(x.cols), matrix_of<float>(sums));
}

template <int N, class T>
void run_backward_apply(Device& device, Queue& queue, BackwardArgs<T> args, float* dgamma,
                        float* dbeta) {
  const ColumnGrid grid = column_grid(args.rows, args.cols, N);
  Tensor partial;
  const bool wanted = dgamma != nullptr || dbeta != nullptr;
  if (wanted)
    partial = Tensor(device, DType::f32, 2 * grid.shares, args.cols, MemoryKind::workspace);
  args.partial = partial.view().template as<float>();
  LaunchShape shape;
  shape.threads = kElementThreads;
  shape.blocks_x = grid.tiles, shape.blocks_y = grid.shares;
  launch(queue, shape, backward_apply<N, T>, args);
  if (!wanted) return;
  const ConstTensorView all = partial.view();
  if (dgamma != nullptr) return add_partials(queue, all, grid.shares, dgamma, dbeta);
  add_partials(queue, all.row_range(grid.shares, grid.shares), grid.shares, dbeta, nullptr);
}

}  // namespace

void CudaOps::norm_backward_stats(Queue& queue, ConstTensorView dy, ConstTensorView x,
                                  ConstTensorView moments, ConstTensorView gamma, TensorView sums) {
  visit_activation(x.dtype, [&]<class T>(T) {
    if (fit_whole_packs({dy, x, gamma}, x.cols, kPack<T>))
      run_backward_stats<kPack<T>, T>(queue, dy, x, moments, gamma, sums);
    else
      run_backward_stats<1, T>(queue, dy, x, moments, gamma, sums);
  });
}

void CudaOps::norm_backward_apply(Queue& queue, NormKind kind, ConstTensorView dy,
                                  ConstTensorView x, ConstTensorView moments, ConstTensorView gamma,
                                  ConstTensorView sums, index_t length, bool accumulate,
                                  TensorView dx, TensorView dgamma, TensorView dbeta) {
  if (x.empty()) return;
  visit_activation(x.dtype, [&]<class T>(T) {
    const float inverse = 1.0F / static_cast<float>(length);
    const BackwardArgs<T> args{matrix_of<T>(dy),
                               matrix_of<T>(x),
                               matrix_of<float>(moments),
                               gamma.as<float>(),
                               matrix_of<float>(sums),
                               matrix_of<T>(dx),
                               x.rows,
                               static_cast<int>(x.cols),
                               kind == NormKind::layer ? inverse : 0.0F,
                               inverse,
                               accumulate,
                               nullptr};
    auto *to_gamma = dgamma.as<float>(), *to_beta = dbeta.as<float>();
    if (fit_whole_packs({dy, x, gamma, dx}, x.cols, kPack<T>))
      run_backward_apply<kPack<T>>(device_, queue, args, to_gamma, to_beta);
    else
      run_backward_apply<1>(device_, queue, args, to_gamma, to_beta);
  });
}

}  // namespace t3d::cuda
