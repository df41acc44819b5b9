// How far two results are apart, as one number: sums of squares in fp64 per block, added on the
// host. Runs once per shape, outside of training steps: simple rather than fast.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/cuda/engine_trial.hpp"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/numbers.cuh"
#include "ops/cuda/reduce.cuh"

namespace t3d::cuda {
namespace {

constexpr int kThreads = 256;
constexpr index_t kMaxBlocks = 512;

/// sums[block] = (sum (x-y)^2, sum y^2, how many pairs have one finite number only).
template <class T>
__global__ void __launch_bounds__(kThreads)
    difference(const T* x, index_t x_ld, const T* y, index_t y_ld, index_t rows, index_t cols,
               double* sums) {
  __shared__ double shared[32];
  double apart = 0, size = 0, lost = 0;
  for (index_t i = static_cast<index_t>(blockIdx.x) * kThreads + threadIdx.x; i < rows * cols;
       i += static_cast<index_t>(gridDim.x) * kThreads) {
    const index_t row = i / cols, col = i % cols;
    const float a = to_float(x[row * x_ld + col]), b = to_float(y[row * y_ld + col]);
    const bool finite_a = fabsf(a) <= FLT_MAX, finite_b = fabsf(b) <= FLT_MAX;
    if (finite_a != finite_b) lost += 1;
    if (!finite_a || !finite_b) continue;
    const double difference = static_cast<double>(a) - static_cast<double>(b);
    apart += difference * difference;
    size += static_cast<double>(b) * static_cast<double>(b);
  }
  apart = block_sum(apart, shared);
  size = block_sum(size, shared);
  lost = block_sum(lost, shared);
  if (threadIdx.x != 0) return;
  sums[3 * blockIdx.x] = apart;
  sums[3 * blockIdx.x + 1] = size;
  sums[3 * blockIdx.x + 2] = lost;
}

}  // namespace

double relative_error(Device& device, Queue& queue, ConstTensorView x, ConstTensorView y) {
  if (x.empty()) return 0;
  const index_t blocks = std::min(blocks_for(x.count(), kThreads), kMaxBlocks);
  const Tensor sums(device, DType::f64, 1, 3 * blocks, MemoryKind::workspace);
  visit_activation(x.dtype, [&](auto number) {
    using T = decltype(number);
    launch(queue, {blocks, 1, 1, kThreads}, difference<T>, x.as<T>(), x.ld, y.as<T>(), y.ld, x.rows,
           x.cols, sums.view().as<double>());
  });
  std::vector<double> host(static_cast<std::size_t>(3 * blocks));
  device.copy(host.data(), sums.view().data, sums.view().bytes(), queue);
  queue.synchronize();
  double apart = 0, size = 0, lost = 0;
  for (std::size_t i = 0; i < host.size(); i += 3) {
    apart += host[i];
    size += host[i + 1];
    lost += host[i + 2];
  }
  if (lost > 0) return std::numeric_limits<double>::infinity();
  if (apart > 0 && size == 0.0) return std::numeric_limits<double>::infinity();
  return apart > 0 ? std::sqrt(apart / size) : 0.0;
}

}  // namespace t3d::cuda
