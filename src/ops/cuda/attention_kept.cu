// Attention of one new row of each sequence to kept keys and values. A block owns a row and a query
// head, its warps take kept rows in turn, each with a running softmax of its own, and their results
// are merged at the end in the order of the warps. Lanes hold every 32nd number of a head. Bound by
// reading the kept rows, once for each query head. Speed not measured.
#include <cmath>
#include <numbers>

#include "ops/cuda/cuda_ops.hpp"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/reduce.cuh"

namespace t3d::cuda {
namespace {

constexpr int kWarps = 4, kColumns = 8, kMaxHead = kWarp * kColumns;

template <class T>
struct KeptProblem {
  Matrix<const T> q, keys, values;
  Matrix<T> out;
  const std::int32_t* places;
  index_t capacity;
  int heads, group, size;  // group: query heads of a kv head
  float scale_log2e;
};

/// A warp's running softmax and weighted sum over the kept rows that it has seen.
struct KeptSoftmax {
  float max = -INFINITY, total = 0;
  float sum[kColumns] = {};
};

template <class T>
__device__ __forceinline__ float number_at(const T* row, int col, int size) {
  return col < size ? to_float(row[col]) : 0.0F;
}

template <class T>
__device__ __forceinline__ void see(KeptSoftmax& seen, const float (&q)[kColumns], const T* key,
                                    const T* value, int lane, const KeptProblem<T>& p) {
  float score = 0;
#pragma unroll
  for (int c = 0; c < kColumns; ++c) score += q[c] * number_at(key, lane + c * kWarp, p.size);
  score = warp_sum(score) * p.scale_log2e;
  const float top = fmaxf(seen.max, score);
  const float older = exp2f(seen.max - top), weight = exp2f(score - top);
  seen.max = top;
  seen.total = seen.total * older + weight;
#pragma unroll
  for (int c = 0; c < kColumns; ++c)
    seen.sum[c] = seen.sum[c] * older + weight * number_at(value, lane + c * kWarp, p.size);
}

// grid: rows * heads
template <class T>
__global__ void __launch_bounds__(kWarps* kWarp) attend_to_kept(const KeptProblem<T> p) {
  __shared__ float max_of[kWarps], total_of[kWarps], sum_of[kWarps][kMaxHead];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
  const index_t row = blockIdx.x / p.heads;
  const int head = static_cast<int>(blockIdx.x % p.heads);
  const index_t place = p.places[row];
  T* out = p.out.at(row, 0) + head * p.size;
  if (place < 0) {
    for (int c = thread; c < p.size; c += kWarps * kWarp) out[c] = from_float<T>(0.0F);
    return;
  }
  const int kv = head / p.group * p.size;
  const T* query = p.q.at(row, 0) + head * p.size;
  float q[kColumns];
#pragma unroll
  for (int c = 0; c < kColumns; ++c) q[c] = number_at(query, lane + c * kWarp, p.size);
  KeptSoftmax seen;
  for (index_t at = place / p.capacity * p.capacity + warp; at <= place; at += kWarps)
    see(seen, q, p.keys.at(at, kv), p.values.at(at, kv), lane, p);
  if (lane == 0) max_of[warp] = seen.max, total_of[warp] = seen.total;
#pragma unroll
  for (int c = 0; c < kColumns; ++c) sum_of[warp][lane + c * kWarp] = seen.sum[c];
  __syncthreads();
  float top = max_of[0], total = 0;  // the first warp has seen a row
#pragma unroll
  for (int w = 1; w < kWarps; ++w) top = fmaxf(top, max_of[w]);
#pragma unroll
  for (int w = 0; w < kWarps; ++w) total += total_of[w] * exp2f(max_of[w] - top);
  for (int c = thread; c < p.size; c += kWarps * kWarp) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += sum_of[w][c] * exp2f(max_of[w] - top);
    out[c] = from_float<T>(sum / total);
  }
}

}  // namespace

void CudaOps::kept_attention(Queue& queue, const KeptAttentionArgs& args, TensorView out) {
  if (out.empty()) return;
  if (args.head_size > kMaxHead)
    throw_error(ExitCode::unavailable, "heads of {} numbers: a GPU takes at most {}",
                args.head_size, kMaxHead);
  visit_activation(out.dtype, [&]<class T>(T) {
    const double scale = std::numbers::log2e / std::sqrt(static_cast<double>(args.head_size));
    const KeptProblem<T> problem{
        matrix_of<T>(args.queries),       matrix_of<T>(args.keys),
        matrix_of<T>(args.values),        matrix_of<T>(out),
        args.places.as<std::int32_t>(),   args.capacity,
        static_cast<int>(args.heads),     static_cast<int>(args.heads / args.kv_heads),
        static_cast<int>(args.head_size), static_cast<float>(scale)};
    LaunchShape shape;
    shape.threads = kWarps * kWarp;
    shape.blocks_x = out.rows * args.heads;
    launch(queue, shape, attend_to_kept<T>, problem);
  });
}

}  // namespace t3d::cuda
