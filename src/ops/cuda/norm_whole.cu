// Residual addition and normalisation of rows that are whole on this device, in one pass: the sum
// stays in registers from the addition to the output.
// - version 1: add, norm_stats, norm_merge, norm_apply: 7 numbers moved per element, 4 launches
// - version 2, here: 4 numbers (x and branch in, sum and y out), 1 launch; without a branch 2
//   instead of 3. A warp per row up to 1024 columns, a block of up to 512 threads per row beyond;
//   rows of more than 16384 columns, or that allow no packs, go the long way (each number would
//   need an address of its own: registers spill).
// gamma and beta are read again for every row, from the first-level cache: 8 bytes beside 8 of a
// row in 16 bits, where that cache has several times the rate of memory. Speed not measured.
#include "ops/cuda/cuda_ops.hpp"
#include "ops/cuda/elements.cuh"

namespace t3d::cuda {
namespace {

constexpr int kHeld = 32;  // numbers of a row per thread
constexpr int kRowWarps = 8, kMaxRowThreads = 512;

template <class T>
struct WholeArgs {
  Matrix<const T> x;
  Matrix<T> sum;              // null: no branch
  const float *gamma, *beta;  // beta may be null
  Matrix<float> moments;
  Matrix<T> y;
  index_t rows;
  int cols;
  bool layer;
  float eps;
};

template <int N, bool warp_row, class T>
__global__ void __launch_bounds__(warp_row ? kRowWarps* kWarp : kMaxRowThreads)
    whole_norm(WholeArgs<T> a) {
  __shared__ float shared[kWarp];
  const index_t row = warp_row ? blockIdx.x * index_t{kRowWarps} + threadIdx.x / kWarp : blockIdx.x;
  if (row >= a.rows) return;
  const int threads = warp_row ? kWarp : static_cast<int>(blockDim.x);
  const int thread = static_cast<int>(threadIdx.x) % threads;
  const bool added = a.sum.data != nullptr;
  Elements<T, N> held[kHeld / N];
  float total = 0, squares = 0;
#pragma unroll
  for (int p = 0; p < kHeld / N; ++p) {
    const int col = (p * threads + thread) * N;
    held[p].clear();
    if (col < a.cols) held[p].load(a.x.at(row, col));
  }
  if (added) {
#pragma unroll
    for (int p = 0; p < kHeld / N; ++p) {
      const int col = (p * threads + thread) * N;
      if (col >= a.cols) continue;
      Elements<T, N> branch;
      branch.load(a.sum.at(row, col));
      float both[N];
#pragma unroll
      for (int i = 0; i < N; ++i) both[i] = held[p][i] + branch[i];
      held[p].assign(both);  // rounded: the norm is that of what is stored
      held[p].store(a.sum.at(row, col));
    }
  }
#pragma unroll
  for (int p = 0; p < kHeld / N; ++p)
#pragma unroll
    for (int i = 0; i < N; ++i) total += held[p][i];
  const float n = static_cast<float>(a.cols);
  const float mean = a.layer ? row_sum<warp_row>(total, shared) / n : 0.0F;
#pragma unroll
  for (int p = 0; p < kHeld / N; ++p) {
    const bool here = (p * threads + thread) * N < a.cols;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float distance = here ? held[p][i] - mean : 0.0F;
      squares += distance * distance;
    }
  }
  const float rstd = 1.0F / sqrtf(row_sum<warp_row>(squares, shared) / n + a.eps);
#pragma unroll
  for (int p = 0; p < kHeld / N; ++p) {
    const int col = (p * threads + thread) * N;
    if (col >= a.cols) continue;
    Elements<float, N> gamma, beta;
    gamma.load(a.gamma + col);
    beta.clear();
    if (a.beta != nullptr) beta.load(a.beta + col);
    float y[N];
#pragma unroll
    for (int i = 0; i < N; ++i) y[i] = (held[p][i] - mean) * rstd * gamma[i] + beta[i];
    held[p].assign(y);
    held[p].store(a.y.at(row, col));
  }
  if (thread == 0) *a.moments.at(row, 0) = mean, *a.moments.at(row, 1) = rstd;
}

template <int N, class T>
void run_whole_norm(Queue& queue, const WholeArgs<T>& args) {
  LaunchShape shape;
  if (args.cols <= kWarp * kHeld) {
    shape.threads = kRowWarps * kWarp;
    shape.blocks_x = blocks_for(args.rows, kRowWarps);
    launch(queue, shape, whole_norm<N, true, T>, args);
  } else {
    shape.threads = static_cast<int>(blocks_for(args.cols, kWarp * kHeld)) * kWarp;
    shape.blocks_x = args.rows;
    launch(queue, shape, whole_norm<N, false, T>, args);
  }
}

}  // namespace

void CudaOps::norm_forward(Queue& queue, const NormArgs& args) {
  const index_t cols = args.x.cols, width = 16 / size_of(args.x.dtype);
  const bool packs =
      fit_whole_packs({args.x, args.sum, args.gamma, args.beta, args.y}, cols, width);
  if (cols == 0 || cols > kMaxRowThreads * kHeld || !packs) return Ops::norm_forward(queue, args);
  visit_activation(args.x.dtype, [&]<class T>(T) {
    const WholeArgs<T> whole{matrix_of<T>(args.x),
                             matrix_of<T>(args.sum),
                             args.gamma.as<float>(),
                             args.beta.as<float>(),
                             matrix_of<float>(args.moments),
                             matrix_of<T>(args.y),
                             args.x.rows,
                             static_cast<int>(cols),
                             args.kind == NormKind::layer,
                             static_cast<float>(args.eps)};
    run_whole_norm<kPack<T>>(queue, whole);
  });
}

}  // namespace t3d::cuda
