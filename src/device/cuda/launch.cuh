// Launching kernels: one function, so that every launch is checked and nothing uses <<<>>> (which
// only nvcc understands; cudaLaunchKernelEx is plain C++ and also exists in the emulation).
#pragma once
#include <cuda_runtime.h>

#include <type_traits>

#include "core/types.hpp"
#include "device/cuda/cuda_queue.hpp"

namespace t3d::cuda {

/// Grid, block and dynamic shared memory of one launch. `blocks` < 2^31 along x, 65535 along y, z.
struct LaunchShape {
  index_t blocks_x = 1, blocks_y = 1, blocks_z = 1;
  int threads = 256;
  index_t shared_bytes = 0;
};

/// Runs kernel(args...) on the queue's stream; nothing where a grid extent is 0. Throws Error on a
/// launch failure.
template <class... Params, class... Args>
void launch(Queue& queue, const LaunchShape& shape, void (*kernel)(Params...), Args&&... args) {
  if (shape.blocks_x <= 0 || shape.blocks_y <= 0 || shape.blocks_z <= 0) return;
  constexpr index_t kDefaultSharedLimit = 48 << 10;
  if (shape.shared_bytes > kDefaultSharedLimit)
    check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shape.shared_bytes)),
          "dynamic shared memory of a kernel");
  cudaLaunchConfig_t config{};
  config.gridDim =
      dim3(static_cast<unsigned>(shape.blocks_x), static_cast<unsigned>(shape.blocks_y),
           static_cast<unsigned>(shape.blocks_z));
  config.blockDim = dim3(static_cast<unsigned>(shape.threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(shape.shared_bytes);
  config.stream = stream_of(queue);
  check(cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...), "launching a kernel");
}

/// Blocks for `n` elements, `per_block` each.
[[nodiscard]] constexpr index_t blocks_for(index_t n, index_t per_block) {
  return (n + per_block - 1) / per_block;
}

}  // namespace t3d::cuda
