// ldmatrix and mma.sync against plain loops, with the layouts of the PTX manual (section "Matrix
// Fragments"): lane l = 4 g + t holds d(g, 2t), d(g, 2t+1), d(g+8, 2t), d(g+8, 2t+1).
#include <cuda_runtime.h>

#include <vector>

#include "ops/cuda/ptx.cuh"
#include "support/catch.hpp"

namespace {

namespace ptx = t3d::cuda::ptx;

// d[16,8] = a[16,16] b[16,8]; a row-major, b row-major, through shared memory and ldmatrix.
template <class T>
__global__ void multiply(const T* a, const T* b, float* d) {
  T* shared = ptx::shared_memory<T>();
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = lane; i < 256; i += 32) shared[i] = a[i];
  for (int i = lane; i < 128; i += 32) shared[256 + i] = b[i];
  __syncwarp();
  std::uint32_t fa[4], fb[2];
  // Matrices of a: rows 0-7 and 8-15 of columns 0-7, then of columns 8-15.
  ptx::ldmatrix_x4(fa, shared + (lane % 8 + lane / 8 % 2 * 8) * 16 + lane / 16 * 8);
  // b is stored by rows, the fragment wants columns: transposed.
  ptx::ldmatrix_x2_trans(fb, shared + 256 + lane % 16 * 8);
  float sums[4] = {};
  ptx::mma_m16n8k16<T>(sums, fa, fb);
  const int g = lane / 4, t = lane % 4;
  d[g * 8 + 2 * t] = sums[0];
  d[g * 8 + 2 * t + 1] = sums[1];
  d[(g + 8) * 8 + 2 * t] = sums[2];
  d[(g + 8) * 8 + 2 * t + 1] = sums[3];
}

__global__ void multiply_tf32(const float* a, const float* b, float* d) {
  const int lane = static_cast<int>(threadIdx.x), g = lane / 4, t = lane % 4;
  const auto word = [](float x) { return __float_as_uint(x); };
  const std::uint32_t fa[4] = {word(a[g * 8 + t]), word(a[(g + 8) * 8 + t]), word(a[g * 8 + t + 4]),
                               word(a[(g + 8) * 8 + t + 4])};
  const std::uint32_t fb[2] = {word(b[t * 8 + g]), word(b[(t + 4) * 8 + g])};
  float sums[4] = {};
  ptx::mma_m16n8k8_tf32(sums, fa, fb);
  d[g * 8 + 2 * t] = sums[0];
  d[g * 8 + 2 * t + 1] = sums[1];
  d[(g + 8) * 8 + 2 * t] = sums[2];
  d[(g + 8) * 8 + 2 * t + 1] = sums[3];
}

template <class T>
void check_product(void (*kernel)(const T*, const T*, float*), int depth) {
  T *a = nullptr, *b = nullptr;
  float* d = nullptr;
  cudaMalloc(&a, static_cast<std::size_t>(16 * depth) * sizeof(T));
  cudaMalloc(&b, static_cast<std::size_t>(8 * depth) * sizeof(T));
  cudaMalloc(&d, 128 * sizeof(float));
  for (int i = 0; i < 16 * depth; ++i) a[i] = static_cast<T>(static_cast<float>(i * 37 % 29 - 14));
  for (int i = 0; i < 8 * depth; ++i) b[i] = static_cast<T>(static_cast<float>(i * 53 % 31 - 15));
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  cudaLaunchConfig_t config;
  config.blockDim = 32;
  config.dynamicSmemBytes = 1024;
  config.stream = stream;
  REQUIRE(cudaLaunchKernelEx(&config, kernel, static_cast<const T*>(a), static_cast<const T*>(b),
                             d) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  for (int row = 0; row < 16; ++row)
    for (int col = 0; col < 8; ++col) {
      float sum = 0;
      for (int k = 0; k < depth; ++k)
        sum += static_cast<float>(a[row * depth + k]) * static_cast<float>(b[k * 8 + col]);
      REQUIRE(d[row * 8 + col] == sum);
    }
  cudaStreamDestroy(stream);
  cudaFree(a);
  cudaFree(b);
  cudaFree(d);
}

}  // namespace

TEST_CASE("products of 16-bit fragments") {
  check_product(multiply<__nv_bfloat16>, 16);
  check_product(multiply<__half>, 16);
}

TEST_CASE("products of tf32 fragments") { check_product(multiply_tf32, 8); }
