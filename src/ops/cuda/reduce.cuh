// Sums and maxima over a warp or a block. The order is fixed by lane and warp numbers alone, so a
// result never depends on timing: exchanges between lanes at distances 16, 8, 4, 2, 1, and the
// warps' results once more the same way. Every thread gets the result.
#pragma once
#include <cuda_runtime.h>

namespace t3d::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffU;

template <class T>
__device__ __forceinline__ T warp_sum(T value) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    value += __shfl_xor_sync(kAllLanes, value, distance);
  return value;
}

__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, distance));
  return value;
}

/// All threads of the block must call it; blockDim.x a multiple of 32. `shared` has room for 32
/// numbers and may be used again afterwards.
template <class T>
__device__ __forceinline__ T block_sum(T value, T* shared) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  value = warp_sum(value);
  if (lane == 0) shared[warp] = value;
  __syncthreads();
  value = warp_sum(lane < warps ? shared[lane] : T{});
  __syncthreads();
  return value;
}

/// The sum over a row's threads: a warp (`shared` unused) or the whole block.
template <bool warp_row, class T>
__device__ __forceinline__ T row_sum(T value, T* shared) {
  if constexpr (warp_row)
    return warp_sum(value);
  else
    return block_sum(value, shared);
}

}  // namespace t3d::cuda
