// Cross-entropy over a slice of the vocabulary: statistics of every row, their merge over the
// slices and the gradient in place.
// - xent_stats: one pass. Every thread keeps a running maximum and a sum scaled to it; four packs
//   are loaded together, so the sum is rescaled once for 32 logits of 16 bits. A pass for the
//   maximum and one for the sum would read the row twice, which for 50k logits comes from memory.
// - xent_grad: one pass in place, four packs in flight.
// Both have a block per row and take packs between the row's first and last 16-byte border, because
// vocabularies of odd size (50257) put every row at another alignment. Bytes per logit: stats s,
// grad 2s, s the size of T. Speed not measured.
#include <cfloat>

#include "ops/cuda/cuda_ops.hpp"
#include "ops/cuda/elements.cuh"

namespace t3d::cuda {
namespace {

constexpr int kInFlight = 4;  // packs per thread

/// A row as a head of less than a pack, whole packs, and a tail of less than a pack.
struct RowCut {
  int head, packs, tail;
};
template <class T>
__device__ __forceinline__ RowCut cut_row(const T* row, int cols) {
  constexpr int kPer = kPack<T>;
  const auto past = static_cast<int>(reinterpret_cast<std::uintptr_t>(row) / sizeof(T) % kPer);
  const int head = min(cols, past == 0 ? 0 : kPer - past);
  const int packs = (cols - head) / kPer;
  return {head, packs, cols - head - packs * kPer};
}

/// Threads of a block for rows of `cols` numbers: each has its kInFlight packs, 512 at most.
template <class T>
int row_threads(index_t cols) {
  const index_t warps = blocks_for(cols, index_t{kPack<T>} * kWarp * kInFlight);
  return static_cast<int>(std::clamp<index_t>(warps, 1, 16)) * kWarp;
}

/// max and sum of exp(x - max) over the numbers seen. Nothing seen: (-FLT_MAX, 0), which keeps the
/// difference of two maxima finite.
struct RowSoftmax {
  float max = -FLT_MAX, sum = 0;

  __device__ __forceinline__ void raise(float to) {
    const float larger = fmaxf(max, to);
    sum *= __expf(max - larger);
    max = larger;
  }
  __device__ __forceinline__ void add(float x) { sum += __expf(x - max); }
  __device__ __forceinline__ void merge(const RowSoftmax& other) {
    raise(other.max);
    sum += other.sum * __expf(other.max - max);
  }
};

__device__ __forceinline__ RowSoftmax warp_softmax(RowSoftmax own) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    const RowSoftmax other{__shfl_xor_sync(kAllLanes, own.max, distance),
                           __shfl_xor_sync(kAllLanes, own.sum, distance)};
    own.merge(other);
  }
  return own;
}

template <class T>
__global__ void __launch_bounds__(512)
    row_softmax(Matrix<const T> logits, int cols, const std::int32_t* targets, index_t col0,
                Matrix<float> stats) {
  constexpr int N = kPack<T>;
  __shared__ float max_of[kWarp], sum_of[kWarp];
  const index_t row = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const T* x = logits.at(row, 0);
  const RowCut cut = cut_row(x, cols);
  float nothing[N];
#pragma unroll
  for (int i = 0; i < N; ++i) nothing[i] = -INFINITY;
  RowSoftmax own;
  for (int first = thread; first < cut.packs; first += threads * kInFlight) {
    Elements<T, N> item[kInFlight];
    float max = -FLT_MAX;
#pragma unroll
    for (int p = 0; p < kInFlight; ++p) {
      item[p].assign(nothing);
      if (first + p * threads < cut.packs) item[p].load(x + cut.head + (first + p * threads) * N);
    }
#pragma unroll
    for (int p = 0; p < kInFlight; ++p)
#pragma unroll
      for (int i = 0; i < N; ++i) max = fmaxf(max, item[p][i]);
    own.raise(max);
#pragma unroll
    for (int p = 0; p < kInFlight; ++p)
#pragma unroll
      for (int i = 0; i < N; ++i) own.add(item[p][i]);
  }
  for (int rest = thread; rest < cut.head + cut.tail; rest += threads) {
    const float value = to_float(x[rest < cut.head ? rest : cols - cut.tail + rest - cut.head]);
    own.raise(value);
    own.add(value);
  }
  own = warp_softmax(own);
  if (thread % kWarp == 0) max_of[thread / kWarp] = own.max, sum_of[thread / kWarp] = own.sum;
  __syncthreads();
  if (thread >= kWarp) return;
  own = thread < threads / kWarp ? RowSoftmax{max_of[thread], sum_of[thread]} : RowSoftmax{};
  own = warp_softmax(own);
  if (thread > 0) return;
  const index_t target = targets[row] - col0;
  const bool here = targets[row] >= 0 && target >= 0 && target < cols;
  *stats.at(row, 0) = own.sum == 0.0F ? -INFINITY : own.max;
  *stats.at(row, 1) = own.sum;
  *stats.at(row, 2) = here ? to_float(x[target]) : 0.0F;
}

__global__ void merge_softmax(Matrix<const float> stats, index_t rows, int parts,
                              const std::int32_t* targets, float* lse, float* loss) {
  const index_t row = blockIdx.x * index_t{blockDim.x} + threadIdx.x;
  if (row >= rows) return;
  float max = -INFINITY, sum = 0, target = 0;
  for (int p = 0; p < parts; ++p) max = fmaxf(max, *stats.at(p * rows + row, 0));
  for (int p = 0; p < parts; ++p) {
    const float* part = stats.at(p * rows + row, 0);
    target += part[2];
    if (part[1] != 0.0F) sum += part[1] * expf(part[0] - max);
  }
  const float total = max + logf(sum);
  lse[row] = total;
  loss[row] = targets[row] < 0 ? 0.0F : total - target;
}

template <class T>
__global__ void __launch_bounds__(512)
    row_gradient(Matrix<T> logits, int cols, const std::int32_t* targets, index_t col0,
                 const float* lse, float scale) {
  constexpr int N = kPack<T>;
  const index_t row = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  T* x = logits.at(row, 0);
  const RowCut cut = cut_row(x, cols);
  const index_t target = targets[row] - col0;
  const float factor = targets[row] < 0 ? 0.0F : scale, own_lse = lse[row];
  const auto gradient = [&](float value, int col) {
    const float p = __expf(value - own_lse);
    // An ignored row becomes 0 whatever its logits are.
    return factor == 0.0F ? 0.0F : (p - (col == target ? 1.0F : 0.0F)) * factor;
  };
  for (int first = thread; first < cut.packs; first += threads * kInFlight) {
    Elements<T, N> item[kInFlight];
#pragma unroll
    for (int p = 0; p < kInFlight; ++p)
      if (first + p * threads < cut.packs) item[p].load(x + cut.head + (first + p * threads) * N);
#pragma unroll
    for (int p = 0; p < kInFlight; ++p) {
      if (first + p * threads >= cut.packs) continue;
      const int col = cut.head + (first + p * threads) * N;
      float out[N];
#pragma unroll
      for (int i = 0; i < N; ++i) out[i] = gradient(item[p][i], col + i);
      item[p].assign(out);
      item[p].store(x + col);
    }
  }
  for (int rest = thread; rest < cut.head + cut.tail; rest += threads) {
    const int col = rest < cut.head ? rest : cols - cut.tail + rest - cut.head;
    x[col] = from_float<T>(gradient(to_float(x[col]), col));
  }
}

}  // namespace

void CudaOps::xent_stats(Queue& queue, ConstTensorView logits, ConstTensorView targets,
                         index_t col0, TensorView stats) {
  visit_activation(logits.dtype, [&]<class T>(T) {
    LaunchShape shape;
    shape.threads = row_threads<T>(logits.cols);
    shape.blocks_x = stats.rows;
    launch(queue, shape, row_softmax<T>, matrix_of<T>(logits), static_cast<int>(logits.cols),
           targets.as<std::int32_t>(), col0, matrix_of<float>(stats));
  });
}

void CudaOps::xent_merge(Queue& queue, ConstTensorView stats, index_t parts,
                         ConstTensorView targets, TensorView lse, TensorView loss) {
  LaunchShape shape;
  shape.blocks_x = blocks_for(lse.cols, shape.threads);
  launch(queue, shape, merge_softmax, matrix_of<float>(stats), lse.cols, static_cast<int>(parts),
         targets.as<std::int32_t>(), lse.as<float>(), loss.as<float>());
}

void CudaOps::xent_grad(Queue& queue, TensorView logits, ConstTensorView targets, index_t col0,
                        ConstTensorView lse, double scale) {
  if (logits.empty()) return;
  visit_activation(logits.dtype, [&]<class T>(T) {
    LaunchShape shape;
    shape.threads = row_threads<T>(logits.cols);
    shape.blocks_x = logits.rows;
    launch(queue, shape, row_gradient<T>, matrix_of<T>(logits), static_cast<int>(logits.cols),
           targets.as<std::int32_t>(), col0, lse.as<float>(), static_cast<float>(scale));
  });
}

}  // namespace t3d::cuda
