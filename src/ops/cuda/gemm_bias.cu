#include "ops/cuda/gemm_bias.hpp"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/numbers.cuh"

namespace t3d::cuda {
namespace {

constexpr int kThreads = 256;

template <class T>
__global__ void round_vector(const float* from, T* to, index_t n) {
  const index_t i = static_cast<index_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) to[i] = from_float<T>(from[i]);
}

}  // namespace

void round_bias(Queue& queue, ConstTensorView from, TensorView to) {
  visit_activation(to.dtype, [&](auto number) {
    using T = decltype(number);
    launch(queue, {blocks_for(to.cols, kThreads), 1, 1, kThreads}, round_vector<T>,
           from.as<float>(), to.as<T>(), to.cols);
  });
}

}  // namespace t3d::cuda
