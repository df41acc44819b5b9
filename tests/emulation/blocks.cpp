// Threads of an emulated block: barriers, warp collectives, shared memory, and the faults that must
// be seen.
#include <cuda_runtime.h>

#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/cuda/ptx.cuh"
#include "support/catch.hpp"

namespace {

template <class T>
struct Buffer {
  explicit Buffer(std::size_t n) : count(n) { REQUIRE(cudaMalloc(&data, n * sizeof(T)) == 0); }
  ~Buffer() { cudaFree(data); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  T& operator[](std::size_t at) { return data[at]; }
  T* data = nullptr;
  std::size_t count;
};

template <class... Params, class... Args>
cudaError_t run(unsigned blocks, unsigned threads, std::size_t shared, void (*kernel)(Params...),
                Args... args) {
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  cudaLaunchConfig_t config;
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  cudaError_t status = cudaLaunchKernelEx(&config, kernel, args...);
  if (status == cudaSuccess) status = cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
  cudaGetLastError();
  return status;
}

__global__ void sum_block(const int* in, int* out, bool wait) {
  int* shared = t3d::cuda::ptx::shared_memory<int>();
  const int t = static_cast<int>(threadIdx.x);
  shared[t] = in[static_cast<int>(blockIdx.x * blockDim.x) + t];
  if (wait) __syncthreads();
  if (t > 0) return;
  int sum = 0;
  for (unsigned i = 0; i < blockDim.x; ++i) sum += shared[i];
  out[blockIdx.x] = sum;
}

__global__ void lanes(int* out) {
  const int t = static_cast<int>(threadIdx.x);
  int sum = t;
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, d);
  const int below = __shfl_up_sync(0xffffffffU, t, 1);
  const unsigned odd = __ballot_sync(0xffffffffU, t % 2);
  const int half = t % 32 < 16 ? __shfl_sync(0xffffU, t, 3) : __shfl_sync(0xffff0000U, t, 20);
  out[4 * t] = sum;
  out[4 * t + 1] = below;
  out[4 * t + 2] = static_cast<int>(odd & 0xffU);
  out[4 * t + 3] = half;
}

__global__ void half_a_barrier(int* out) {
  if (threadIdx.x % 2 == 0) __syncwarp();
  out[threadIdx.x] = 1;
}

__global__ void wrong_shuffle(int* out) { out[threadIdx.x] = __shfl_sync(0xfU, 1, 9); }

__global__ void copies(const float* in, float* out, bool wait) {
  float* shared = t3d::cuda::ptx::shared_memory<float>();
  const int t = static_cast<int>(threadIdx.x);
  t3d::cuda::ptx::cp_async_16(shared + 4 * t, in + 4 * t, t == 1 ? 8 : 16);
  t3d::cuda::ptx::cp_async_commit();
  if (wait)
    t3d::cuda::ptx::cp_async_wait<0>();
  else
    t3d::cuda::ptx::cp_async_wait<1>();
  for (int i = 0; i < 4; ++i) out[4 * t + i] = shared[4 * t + i];
}

}  // namespace

TEST_CASE("threads meet at barriers, block after block") {
  Buffer<int> in(3 * 96), out(3);
  std::iota(in.data, in.data + in.count, 0);
  REQUIRE(run(3, 96, 96 * sizeof(int), sum_block, static_cast<const int*>(in.data), out.data,
              true) == cudaSuccess);
  for (int block = 0; block < 3; ++block)
    CHECK(out[static_cast<std::size_t>(block)] == 96 * 95 / 2 + 96 * 96 * block);
}

TEST_CASE("a missing barrier reads poison") {
  Buffer<int> in(96), out(1);
  std::fill_n(in.data, in.count, 1);
  REQUIRE(run(1, 96, 96 * sizeof(int), sum_block, static_cast<const int*>(in.data), out.data,
              false) == cudaSuccess);
  CHECK(out[0] != 96);
}

TEST_CASE("warp collectives, also of a part of the warp") {
  Buffer<int> out(4 * 64);
  REQUIRE(run(1, 64, 0, lanes, out.data) == cudaSuccess);
  for (int t = 0; t < 64; ++t) {
    const auto at = static_cast<std::size_t>(4 * t);
    CHECK(out[at] == 16 * 31 + (t / 32) * 1024);
    CHECK(out[at + 1] == (t % 32 == 0 ? t : t - 1));
    CHECK(out[at + 2] == 0xaa);
    CHECK(out[at + 3] == t / 32 * 32 + (t % 32 < 16 ? 3 : 20));
  }
}

TEST_CASE("lanes that do not come and lanes that are not asked are faults") {
  Buffer<int> out(32);
  CHECK(run(1, 32, 0, half_a_barrier, out.data) == cudaErrorLaunchFailure);
  CHECK(run(1, 4, 0, wrong_shuffle, out.data) == cudaErrorLaunchFailure);
}

TEST_CASE("asynchronous copies land at the wait") {
  Buffer<float> in(32), out(32);
  std::fill_n(in.data, in.count, 2.0F);
  const float* from = in.data;
  REQUIRE(run(1, 8, 128, copies, from, out.data, true) == cudaSuccess);
  CHECK(out[3] == 2.0F);
  CHECK(out[5] == 2.0F);
  CHECK(out[6] == 0.0F);  // beyond what is valid: zero
  REQUIRE(run(1, 8, 128, copies, from, out.data, false) == cudaSuccess);
  CHECK(std::isnan(out[3]));
  CHECK(run(1, 8, 128, copies, from + 1, out.data, true) == cudaErrorLaunchFailure);  // alignment
}

TEST_CASE("launches beyond the limits are refused") {
  Buffer<int> out(1);
  CHECK(run(1, 1025, 0, lanes, out.data) == cudaErrorInvalidValue);
  CHECK(run(0, 32, 0, lanes, out.data) == cudaErrorInvalidValue);
  CHECK(run(1, 32, 64 << 10, half_a_barrier, out.data) == cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(half_a_barrier, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             228 << 10) == cudaErrorInvalidValue);
}
