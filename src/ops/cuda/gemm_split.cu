// The end of a matmul whose K was cut into slices: C from their partial sums, added in the order of
// the slices, so that two runs give the same bits. 16-byte packs of C where they are possible.
#include "ops/cuda/gemm_output.cuh"

namespace t3d::cuda {
namespace {

constexpr int kThreads = 256;

template <class C, std::size_t pack>
__global__ void __launch_bounds__(kThreads)
    split_sum(int splits, index_t rows, int cols, const float* partial, const GemmOutput out) {
  constexpr int width = static_cast<int>(pack);
  const index_t packs = cols / width;
  const index_t i = static_cast<index_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= rows * packs) return;
  const index_t row = i / packs;
  const int col = static_cast<int>(i % packs) * width;
  constexpr int kPart = width < 4 ? width : 4;
  float sum[pack] = {};
  for (int s = 0; s < splits; ++s) {
    const float* from = partial + (s * rows + row) * cols + col;
#pragma unroll
    for (int p = 0; p < width; p += kPart) {
      const auto four = *reinterpret_cast<const Pack<float, kPart>*>(from + p);
#pragma unroll
      for (int j = 0; j < kPart; ++j) sum[p + j] += four.value[j];
    }
  }
  finish<C>(out, scale_of(out), row, col, cols, sum);
}

template <class C>
void launch_typed(Queue& queue, int splits, int m, int n, const float* partial,
                  const GemmOutput& out) {
  constexpr int kWidth = kPack<C>;
  const bool packs = out.vector && n % kWidth == 0;
  const index_t count = static_cast<index_t>(m) * (packs ? n / kWidth : n);
  const LaunchShape shape{blocks_for(count, kThreads), 1, 1, kThreads};
  if (packs)
    launch(queue, shape, split_sum<C, static_cast<std::size_t>(kWidth)>, splits, m, n, partial,
           out);
  else
    launch(queue, shape, split_sum<C, 1>, splits, m, n, partial, out);
}

}  // namespace

void launch_split_sum(Queue& queue, DType c, int splits, int m, int n, const float* partial,
                      const GemmOutput& out) {
  visit_activation(
      c, [&](auto number) { launch_typed<decltype(number)>(queue, splits, m, n, partial, out); });
}

}  // namespace t3d::cuda
