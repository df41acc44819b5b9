// From Gram matrices to coefficients and gains, by group. Three kernels: one block finds who takes
// part; a warp per group brings its matrix into shared memory, where one lane does what
// ops/adasum_group.hpp says (a chain of some hundred fp64 operations for eight vectors: groups run
// side by side, lanes would not help); one block adds the groups' shares of the summary in their
// order. Compiled with -fmad=false: coefficients have the bits of the other back ends, so that CPU
// and GPU ranks agree on them. Bytes: those of the matrices, and a sector for each number on their
// diagonals; the time is that of the launches and of one group's chain. Speed not measured.
#include "ops/adasum_group.hpp"
#include "ops/adasum.hpp"
#include "ops/cuda/cuda_ops.hpp"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/ptx.cuh"

namespace t3d::cuda {
namespace {

constexpr int kSearchThreads = 1024;

/// Who takes part, in device memory: their weight, how many, which ones in ascending order.
struct LiveVectors {
  double* total;
  int *count, *index;
  /// Of `room` [1, 2 + n] fp64.
  explicit LiveVectors(const Tensor& room)
      : total(room.view().as<double>()),
        count(reinterpret_cast<int*>(total + 1)),
        index(reinterpret_cast<int*>(total + 2)) {}
  [[nodiscard]] static Tensor make_room(Device& device, index_t n) {
    return {device, DType::f64, 1, 2 + n, MemoryKind::workspace};
  }
};

__global__ void __launch_bounds__(kSearchThreads)
    find_live(Matrix<const double> gram, index_t groups, const double* weight, int n,
              LiveVectors live) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const index_t own_groups = lane < groups ? (groups - lane + kWarp - 1) / kWarp : 0;
  for (int i = static_cast<int>(threadIdx.x) / kWarp; i < n; i += kSearchThreads / kWarp) {
    const bool finite =
        adasum::finite_everywhere(gram.at(lane, 0), own_groups, kWarp * gram.ld, n, i);
    const bool everywhere = __all_sync(kAllLanes, finite) != 0;
    if (lane == 0) live.index[i] = everywhere && weight[i] > 0 ? 1 : 0;  // a flag for now
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  int count = 0;
  for (int i = 0; i < n; ++i)
    if (live.index[i] != 0) live.index[count++] = i;
  *live.count = count;
  *live.total = adasum::total_weight(weight, live.index, count);
}

/// A group's memory in shared memory, by the number of vectors.
struct GroupRoom {
  double *gram, *weight, *coefficient, *scratch;
  int* live;
  __device__ GroupRoom(double* memory, int n)
      : gram(memory),
        weight(gram + adasum::packed_size(n)),
        coefficient(weight + n),
        scratch(coefficient + n),
        live(reinterpret_cast<int*>(scratch + n)) {}
  static index_t bytes(index_t n) {
    return (adasum::packed_size(n) + 3 * n) * size_of(DType::f64) + n * size_of(DType::i32);
  }
};

struct GroupTask {
  Matrix<const double> gram;
  const double* weight;
  LiveVectors live;
  Matrix<double> noise;  // null: none
  Matrix<double> coefficients;
  double* gains;
  Matrix<double> shares;   // [summary rows, groups]
  adasum::GroupStep step;  // without pointers and what depends on who is live
  AggregateRule rule;
  double gain_exponent;
};

/// A group's addends of the summary's first columns.
__device__ __forceinline__ void store_shares(const Matrix<double>& shares, index_t group,
                                             double mean_square, double signal, double noise,
                                             double gain) {
  *shares.at(adasum_summary::mean_squares, group) = mean_square;
  *shares.at(adasum_summary::signal, group) = signal;
  *shares.at(adasum_summary::noise, group) = noise;
  *shares.at(adasum_summary::gain, group) = gain * mean_square;
}

__global__ void __launch_bounds__(kWarp) aggregate(const GroupTask task) {
  const index_t group = blockIdx.x;
  const int lane = static_cast<int>(threadIdx.x), n = static_cast<int>(task.step.n);
  const GroupRoom room(ptx::shared_memory<double>(), n);
  const int count = *task.live.count;
  for (int i = lane; i < adasum::packed_size(n); i += kWarp) room.gram[i] = *task.gram.at(group, i);
  for (int i = lane; i < n; i += kWarp) room.weight[i] = task.weight[i];
  for (int i = lane; i < count; i += kWarp) room.live[i] = task.live.index[i];
  __syncthreads();
  if (lane == 0) {
    adasum::GroupStep step = task.step;
    step.weight = room.weight;
    step.live = room.live;
    step.count = count;
    step.total = *task.live.total;
    step.divisor = divisor_of(task.rule, step.total);
    double* noise = task.noise.data == nullptr ? nullptr : task.noise.at(group, 0);
    const adasum::GroupResult result =
        adasum::aggregate_group(step, room.gram, noise, room.coefficient, room.scratch);
    task.gains[group] = gain_power(result.gain, task.gain_exponent);
    store_shares(task.shares, group, result.mean_square, noise == nullptr ? 0 : noise[0],
                 noise == nullptr ? 0 : noise[1], result.gain);
  }
  __syncthreads();
  for (int i = lane; i < n; i += kWarp) *task.coefficients.at(group, i) = room.coefficient[i];
}

constexpr int kShares = 4;  // the summary's first columns are sums over groups
static_assert(adasum_summary::gain < kShares && adasum_summary::weights == kShares);

/// Each sum by one thread, in the order of groups.
__global__ void __launch_bounds__(kElementThreads)
    summarize(Matrix<const double> shares, index_t groups, LiveVectors live, double* summary,
              int columns) {
  __shared__ double sums[kShares];
  const int thread = static_cast<int>(threadIdx.x);
  for (int c = kShares + thread; c < columns; c += kElementThreads) summary[c] = 0;
  if (thread < kShares) {
    double sum = 0;
#pragma unroll 8
    for (index_t g = 0; g < groups; ++g) sum += *shares.at(thread, g);
    sums[thread] = sum;
  }
  __syncthreads();
  for (int x = thread; x < *live.count; x += kElementThreads)
    summary[adasum_summary::columns + live.index[x]] = 1;
  if (thread == adasum_summary::weights) summary[thread] = *live.total;
  if (thread >= kShares) return;
  const double squares = sums[adasum_summary::mean_squares];
  if (thread == adasum_summary::gain)
    summary[thread] = squares > 0 ? sums[thread] / squares : 1.0;
  else
    summary[thread] = sums[thread];
}

void launch_search(Queue& queue, const ConstTensorView& gram, const ConstTensorView& weights,
                   const LiveVectors& live) {
  LaunchShape shape;
  shape.threads = kSearchThreads;
  launch(queue, shape, find_live, matrix_of<double>(gram), gram.rows, weights.as<double>(),
         static_cast<int>(weights.cols), live);
}

void launch_summary(Queue& queue, const ConstTensorView& shares, const LiveVectors& live,
                    const TensorView& summary) {
  LaunchShape shape;
  shape.threads = kElementThreads;
  launch(queue, shape, summarize, matrix_of<double>(shares), shares.cols, live,
         summary.as<double>(), static_cast<int>(summary.cols));
}

[[nodiscard]] adasum::GroupStep step_of(const AdasumArgs& args) {
  adasum::GroupStep step;
  step.n = args.weights.cols;
  step.unscale = args.unscale;
  step.noise_leaf = args.noise_leaf;
  step.plain_leaf = args.plain_leaf;
  step.noise_decay = args.noise_decay;
  return step;
}

}  // namespace

void CudaOps::adasum(Queue& queue, const AdasumArgs& args) {
  const index_t n = args.weights.cols, groups = args.gram.rows;
  T3D_CHECK(n <= adasum::kMostVectors, "{} vectors, at most {}", n, adasum::kMostVectors);
  T3D_CHECK(args.gram.cols == adasum::packed_size(n), "{} numbers of a triangle of {}",
            args.gram.cols, n);
  const Tensor room = LiveVectors::make_room(device_, n);
  const Tensor shares(device_, DType::f64, kShares, groups, MemoryKind::workspace);
  const LiveVectors live(room);
  launch_search(queue, args.gram, args.weights, live);
  LaunchShape shape;
  shape.threads = kWarp;
  shape.blocks_x = groups;
  shape.shared_bytes = GroupRoom::bytes(n);
  launch(queue, shape, aggregate,
         GroupTask{matrix_of<double>(args.gram), args.weights.as<double>(), live,
                   matrix_of<double>(args.noise), matrix_of<double>(args.coefficients),
                   args.gains.as<double>(), matrix_of<double>(shares.view()), step_of(args),
                   args.rule, args.gain_exponent});
  launch_summary(queue, shares, live, args.summary);
}

}  // namespace t3d::cuda
