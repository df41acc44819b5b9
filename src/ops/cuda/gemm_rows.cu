// Products of few rows (GemmArgs::rows_alone): a warp owns one column of C and reads its row of B
// once for every four rows of C; lanes take packs of 16 bytes in turn and their sums are added at
// the end. A row's sum never depends on the other rows. Bound by reading B: for decoding, where B
// is the weight. Speed not measured.
#include "ops/cuda/cuda_ops.hpp"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/reduce.cuh"

namespace t3d::cuda {
namespace {

constexpr int kRows = 4, kWarps = 8;

template <class T, class C>
struct RowProduct {
  Matrix<const T> a, b;
  Matrix<C> c;
  const float* bias;  // null = none
  index_t rows, cols;
  int depth;
  bool accumulate;
};

// grid: columns, rows
template <int N, class T, class C>
__global__ void __launch_bounds__(kWarps* kWarp) multiply_rows(const RowProduct<T, C> p) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const index_t col = blockIdx.x * index_t{kWarps} + static_cast<int>(threadIdx.x) / kWarp;
  const index_t first = blockIdx.y * index_t{kRows};
  if (col >= p.cols) return;
  float sum[kRows] = {};
  for (int k = lane * N; k < p.depth; k += kWarp * N) {
    Elements<T, N> weight;
    weight.load(p.b.at(col, k));
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (first + r >= p.rows) continue;
      Elements<T, N> x;
      x.load(p.a.at(first + r, k));
#pragma unroll
      for (int i = 0; i < N; ++i) sum[r] += x[i] * weight[i];
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    float value = warp_sum(sum[r]);
    if (lane != 0 || first + r >= p.rows) continue;
    C* to = p.c.at(first + r, col);
    if (p.bias != nullptr) value += p.bias[col];
    if (p.accumulate) value += to_float(*to);
    *to = from_float<C>(value);
  }
}

/// By the leading dimension even where there is one row: the same for any number of rows.
bool whole_packs(const ConstTensorView& view) {
  constexpr index_t kBytes = 16;
  return reinterpret_cast<std::uintptr_t>(view.data) % kBytes == 0 &&
         view.ld * size_of(view.dtype) % kBytes == 0 &&
         view.cols * size_of(view.dtype) % kBytes == 0;
}

}  // namespace

void CudaOps::multiply_rows(Queue& queue, const GemmArgs& args) {
  T3D_CHECK(!args.transpose_a && args.transpose_b && args.a.cols == args.b.cols &&
                args.a.rows == args.c.rows && args.b.rows == args.c.cols,
            "product by rows [{},{}] x [{},{}] -> [{},{}]", args.a.rows, args.a.cols, args.b.rows,
            args.b.cols, args.c.rows, args.c.cols);
  if (args.c.empty()) return;
  LaunchShape shape;
  shape.threads = kWarps * kWarp;
  shape.blocks_x = blocks_for(args.c.cols, kWarps);
  shape.blocks_y = blocks_for(args.c.rows, kRows);
  visit_activation(args.b.dtype, [&]<class T>(T) {
    const auto run = [&]<class C>(C) {
      const RowProduct<T, C> product{
          matrix_of<T>(args.a),          matrix_of<T>(args.b), matrix_of<C>(args.c),
          args.bias.as<float>(),         args.c.rows,          args.c.cols,
          static_cast<int>(args.a.cols), args.accumulate};
      const bool packs = whole_packs(args.a) && whole_packs(args.b);
      launch(queue, shape,
             packs ? cuda::multiply_rows<kPack<T>, T, C> : cuda::multiply_rows<1, T, C>, product);
    };
    args.c.dtype == DType::f32 ? run(float{}) : run(T{});
  });
}

}  // namespace t3d::cuda
