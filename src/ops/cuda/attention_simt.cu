// Flash attention without tensor cores: fp32, and whatever the tensor-core kernels cannot take (any
// head size up to 256, any alignment). Speed not measured.
//
// A warp owns kRows rows of one side (queries; keys in the pass for dK and dV). The other side
// comes in tiles of 32 through shared memory: for scores each lane is one row of the tile, for the
// sums over the tile each lane is one column of the head. The backward pass is two passes of one
// kernel: rows = queries gives dQ, rows = keys gives dK and dV over all query heads of the kv head,
// so that every sum has one owner and one order (no atomics); both recompute the probabilities.
#include "device/device.hpp"
#include "ops/cuda/attention_problem.cuh"
#include "ops/cuda/ptx.cuh"
#include "ops/cuda/reduce.cuh"

namespace t3d::cuda {
namespace {

constexpr int kWarps = 4, kRows = 4, kTile = kWarp;
constexpr int kBlockRows = kWarps * kRows;

/// Shared memory: two matrices of the block's rows, two of the tile (rows padded by one float, as
/// lanes read down a column), statistics of the tile.
struct Layout {
  float *row_a, *row_b, *tile_a, *tile_b, *lse, *delta;
  int pitch;
  __device__ explicit Layout(int size) : pitch(size + 1) {
    row_a = ptx::shared_memory<float>();
    row_b = row_a + kBlockRows * pitch;
    tile_a = row_b + kBlockRows * pitch;
    tile_b = tile_a + kTile * pitch;
    lse = tile_b + kTile * pitch;
    delta = lse + kTile;
  }
};
index_t shared_bytes(index_t size) {
  return ((2 * kBlockRows + 2 * kTile) * (size + 1) + 2 * kTile) * 4;
}

/// Rows [first, first + n) of a head into shared memory; zeros from `valid` on.
template <class T>
__device__ void load_rows(float* to, int pitch, const Heads<const T>& from, index_t row0, int head,
                          int n, int valid, int size) {
  for (int i = static_cast<int>(threadIdx.x); i < n * size; i += kWarps * kWarp) {
    const int r = i / size, c = i % size;
    to[r * pitch + c] = r < valid ? to_float(from.at(row0 + r, head, size)[c]) : 0.0F;
  }
}

__device__ __forceinline__ float dot(const float* a, const float* b, int size) {
  float sum = 0;
  for (int c = 0; c < size; ++c) sum += a[c] * b[c];
  return sum;
}

/// sum[c] += weight of lane j * tile row j, for the lane's columns.
template <int kColumns>
__device__ __forceinline__ void add_weighted(float (&sum)[kColumns], float weight,
                                             const float* tile, int pitch, int size) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll 4
  for (int j = 0; j < kTile; ++j) {
    const float w = __shfl_sync(kAllLanes, weight, j);
#pragma unroll
    for (int c = 0; c < kColumns; ++c)
      if (lane + kWarp * c < size) sum[c] += w * tile[j * pitch + lane + kWarp * c];
  }
}

template <class T, int kColumns>
__device__ __forceinline__ void store_row(T* to, const float (&sum)[kColumns], float factor,
                                          int size) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int c = 0; c < kColumns; ++c)
    if (lane + kWarp * c < size) to[lane + kWarp * c] = from_float<T>(sum[c] * factor);
}

// grid: row tiles (last first: causal rows get longer), heads, sequences
template <class T, int kColumns>
__global__ void __launch_bounds__(kWarps* kWarp) forward(const AttentionProblem<T> p) {
  const Layout shared(p.size);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kBlockRows;
  const int head = static_cast<int>(blockIdx.y), kv = head / p.group;
  const index_t row0 = static_cast<index_t>(blockIdx.z) * p.length;
  load_rows(shared.row_a, shared.pitch, p.q, row0 + first, head, kBlockRows, p.length - first,
            p.size);

  float sum[kRows][kColumns] = {}, max[kRows], total[kRows] = {};
#pragma unroll
  for (int r = 0; r < kRows; ++r) max[r] = -INFINITY;
  const int keys = p.causal ? min(p.length, first + kBlockRows) : p.length;
  for (int tile = 0; tile < keys; tile += kTile) {
    __syncthreads();
    load_rows(shared.tile_a, shared.pitch, p.k, row0 + tile, kv, kTile, p.length - tile, p.size);
    load_rows(shared.tile_b, shared.pitch, p.v, row0 + tile, kv, kTile, p.length - tile, p.size);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int row = first + warp * kRows + r, key = tile + lane;
      const bool seen = key < p.length && (!p.causal || key <= row);
      const float* q = shared.row_a + (warp * kRows + r) * shared.pitch;
      const float score =
          seen ? p.scale * dot(q, shared.tile_a + lane * shared.pitch, p.size) : -INFINITY;
      const float top = fmaxf(max[r], warp_max(score));
      const float base = top == -INFINITY ? 0.0F : top;
      const float weight = __expf(score - base), old = __expf(max[r] - base);
      max[r] = top;
      total[r] = total[r] * old + warp_sum(weight);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) sum[r][c] *= old;
      add_weighted(sum[r], weight, shared.tile_b, shared.pitch, p.size);
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int row = first + warp * kRows + r;
    if (row >= p.length) continue;
    store_row(p.out.at(row0 + row, head, p.size), sum[r], 1.0F / total[r], p.size);
    if (lane == 0) p.lse[(row0 + row) * p.lse_ld + head] = max[r] + __logf(total[r]);
  }
}

/// for_keys: rows are keys of head blockIdx.y of the kv heads and tiles are queries; else rows are
/// queries of head blockIdx.y and tiles are keys.
template <class T, int kColumns, bool for_keys>
__global__ void __launch_bounds__(kWarps* kWarp) backward(const AttentionProblem<T> p) {
  const Layout shared(p.size);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int first = static_cast<int>(blockIdx.x) * kBlockRows;
  const int own = static_cast<int>(blockIdx.y);
  const index_t row0 = static_cast<index_t>(blockIdx.z) * p.length;
  const int left = p.length - first;
  load_rows(shared.row_a, shared.pitch, for_keys ? p.k : p.q, row0 + first, own, kBlockRows, left,
            p.size);
  load_rows(shared.row_b, shared.pitch, for_keys ? p.v : p.dout, row0 + first, own, kBlockRows,
            left, p.size);

  float sum_a[kRows][kColumns] = {}, sum_b[for_keys ? kRows : 1][kColumns] = {};
  const int begin = for_keys && p.causal ? first : 0;
  const int end = !for_keys && p.causal ? min(p.length, first + kBlockRows) : p.length;
  for (int member = 0; member < (for_keys ? p.group : 1); ++member) {
    const int head = for_keys ? own * p.group + member : own;  // of the queries
    const int other = for_keys ? head : own / p.group;         // of the tile
    for (int tile = begin; tile < end; tile += kTile) {
      __syncthreads();
      load_rows(shared.tile_a, shared.pitch, for_keys ? p.q : p.k, row0 + tile, other, kTile,
                p.length - tile, p.size);
      load_rows(shared.tile_b, shared.pitch, for_keys ? p.dout : p.v, row0 + tile, other, kTile,
                p.length - tile, p.size);
      __syncthreads();
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const int at_row = first + warp * kRows + r, at_tile = tile + lane;
        const int query = for_keys ? at_tile : at_row, key = for_keys ? at_row : at_tile;
        const bool seen = query < p.length && key < p.length && (!p.causal || key <= query);
        float weight = 0, gradient = 0;
        if (seen) {
          const float* a = shared.row_a + (warp * kRows + r) * shared.pitch;
          const float* b = shared.row_b + (warp * kRows + r) * shared.pitch;
          const float score = p.scale * dot(a, shared.tile_a + lane * shared.pitch, p.size);
          weight = __expf(score - p.lse[(row0 + query) * p.lse_ld + head]);
          const float dweight = dot(b, shared.tile_b + lane * shared.pitch, p.size);
          gradient = weight * (dweight - p.delta[(row0 + query) * p.heads + head]) * p.scale;
        }
        add_weighted(sum_a[r], gradient, shared.tile_a, shared.pitch, p.size);
        if constexpr (for_keys) add_weighted(sum_b[r], weight, shared.tile_b, shared.pitch, p.size);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int row = first + warp * kRows + r;
    if (row >= p.length) continue;
    const Heads<T>& to = for_keys ? p.dk : p.dq;
    store_row(to.at(row0 + row, own, p.size), sum_a[r], 1.0F, p.size);
    if constexpr (for_keys) store_row(p.dv.at(row0 + row, own, p.size), sum_b[r], 1.0F, p.size);
  }
}

/// Calls fn with the number of columns per lane as a constant.
template <class Fn>
void with_columns(index_t size, Fn&& fn) {
  T3D_CHECK(size <= kMaxSimtHead, "head size {}", size);
  if (size <= 32) return fn(std::integral_constant<int, 1>{});
  if (size <= 64) return fn(std::integral_constant<int, 2>{});
  if (size <= 128) return fn(std::integral_constant<int, 4>{});
  fn(std::integral_constant<int, 8>{});
}

LaunchShape shape_of(const AttentionArgs& args, index_t heads) {
  LaunchShape shape;
  shape.threads = kWarps * kWarp;
  shape.blocks_x = blocks_for(args.length, kBlockRows);
  shape.blocks_y = heads;
  shape.blocks_z = args.sequences;
  shape.shared_bytes = shared_bytes(args.head_size);
  return shape;
}

}  // namespace

void simt_forward(Queue& queue, const AttentionArgs& args, TensorView out, TensorView lse) {
  visit_activation(args.qkv.dtype, [&]<class T>(T) {
    AttentionProblem<T> problem = problem_of<T>(args, lse);
    problem.out = {out.as<T>(), out.ld};
    with_columns(args.head_size, [&](auto columns) {
      launch(queue, shape_of(args, args.heads), forward<T, columns.value>, problem);
    });
  });
}

void simt_backward(Queue& queue, Device& device, const AttentionArgs& args, ConstTensorView out,
                   ConstTensorView lse, ConstTensorView dout, TensorView dqkv) {
  const Tensor delta = attention_delta(queue, device, args, out, dout);
  visit_activation(args.qkv.dtype, [&]<class T>(T) {
    AttentionProblem<T> problem = problem_of<T>(args, lse);
    split_heads<T>(args, dqkv, problem.dq, problem.dk, problem.dv);
    problem.dout = {dout.as<T>(), dout.ld};
    problem.delta = delta.view().template as<float>();
    with_columns(args.head_size, [&](auto columns) {
      launch(queue, shape_of(args, args.heads), backward<T, columns.value, false>, problem);
      launch(queue, shape_of(args, args.kv_heads), backward<T, columns.value, true>, problem);
    });
  });
}

}  // namespace t3d::cuda
