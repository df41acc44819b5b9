// Flash attention without tensor cores: fp32, and whatever the tensor-core kernels cannot take (any
// head size up to 256, any alignment). Speed not measured.
//
//   1  A warp owned four rows and a lane one row of the tile: two reads of shared memory per fused
//      multiply-add.
//   2  Every thread owns a small rectangle of each product, so that 16-byte reads serve several
//      products: 6 per 32 multiply-adds for scores, 8 per 64 for sums (head 64).
//
// A block owns kSide rows of one side (queries; keys in the pass for dK and dV). The other side
// comes in tiles of kSide rows. Scores are computed from both, turned into weights, and exchanged
// through shared memory, because the threads that sum over the tile own other rectangles. The
// backward pass is two passes of one kernel: rows = queries gives dQ, rows = keys gives dK and dV
// over all query heads of the kv head, so that every sum has one owner and one order (no atomics);
// both recompute the probabilities.
#include "device/device.hpp"
#include "ops/cuda/attention_simt.cuh"

namespace t3d::cuda {
namespace {

using namespace simt;

/// The running softmax of a thread's rows of scores, shared by eight lanes.
template <class S>
struct ThreadSoftmax {
  float max[S::kScoreRows], total[S::kScoreRows];

  __device__ __forceinline__ ThreadSoftmax() {
#pragma unroll
    for (int r = 0; r < S::kScoreRows; ++r) {
      max[r] = -INFINITY;
      total[r] = 0;
    }
  }
  /// Scores (in base 2) become weights; what older sums must be multiplied with becomes the rows'
  /// factors in shared memory.
  __device__ __forceinline__ void update(Scores<S>& scores) {
#pragma unroll
    for (int r = 0; r < S::kScoreRows; ++r) {
      float top = max[r];
#pragma unroll
      for (int n = 0; n < S::kScoreCols; ++n) top = fmaxf(top, scores[r][n]);
#pragma unroll
      for (int distance = 4; distance > 0; distance /= 2)
        top = fmaxf(top, __shfl_xor_sync(kAllLanes, top, distance));
      const float older = exp2f(max[r] - top);
      max[r] = top;
      total[r] *= older;
#pragma unroll
      for (int n = 0; n < S::kScoreCols; ++n) {
        scores[r][n] = exp2f(scores[r][n] - top);
        total[r] += scores[r][n];
      }
      if (score_col() == 0) *shared(S::kFactors + score_row<S>() + r) = older;
    }
  }
  __device__ __forceinline__ void finish() {
#pragma unroll
    for (int r = 0; r < S::kScoreRows; ++r) {
#pragma unroll
      for (int distance = 4; distance > 0; distance /= 2)
        total[r] += __shfl_xor_sync(kAllLanes, total[r], distance);
      if (score_col() == 0) *shared(S::kFactors + score_row<S>() + r) = 1.0F / total[r];
    }
  }
};

// grid: heads, row tiles, sequences
template <class T, int kColumns>
__global__ void __launch_bounds__(kThreads) forward(const AttentionProblem<T> p) {
  using S = Shape<kColumns>;
  const int head = static_cast<int>(blockIdx.x), kv = head / p.group;
  const int first = static_cast<int>(gridDim.y - 1 - blockIdx.y) * S::kSide;  // long rows first
  const index_t row0 = static_cast<index_t>(blockIdx.z) * p.length;
  load_rows<S>(S::kRowsA, p.q, row0 + first, head, p.length - first, p.size);

  Sums<S> sums;
  clear<S>(sums);
  ThreadSoftmax<S> softmax;
  const int keys = p.causal ? min(p.length, first + S::kSide) : p.length;
  for (int tile = 0; tile < keys; tile += S::kSide) {
    __syncthreads();
    load_rows<S>(S::kTileA, p.k, row0 + tile, kv, p.length - tile, p.size);
    load_rows<S>(S::kTileB, p.v, row0 + tile, kv, p.length - tile, p.size);
    __syncthreads();
    Scores<S> scores;
    multiply<S>(scores, S::kRowsA, S::kTileA, p.size);
#pragma unroll
    for (int r = 0; r < S::kScoreRows; ++r)
#pragma unroll
      for (int n = 0; n < S::kScoreCols; ++n) {
        const int query = first + score_row<S>() + r, key = tile + score_col() + 8 * n;
        const bool seen = key < p.length && (!p.causal || key <= query);
        scores[r][n] = seen ? scores[r][n] * p.scale_log2e : -INFINITY;
      }
    softmax.update(scores);
    put_weights<S>(S::kWeightsA, scores);
    __syncthreads();
    multiply_rows<S>(sums);
    add_weighted<S>(sums, S::kWeightsA, S::kTileB);
  }
  __syncthreads();
  softmax.finish();
  __syncthreads();
  multiply_rows<S>(sums);
  store<S>(sums, 1.0F, p.out, row0 + first, head, p.length - first, p.size);
  if (score_col() != 0) return;
#pragma unroll
  for (int r = 0; r < S::kScoreRows; ++r) {
    const int query = first + score_row<S>() + r;
    if (query < p.length)
      p.lse[(row0 + query) * p.lse_ld + head] = (softmax.max[r] + log2f(softmax.total[r])) * kLn2;
  }
}

/// scores and dweights become P and dS (without the scale). Rows are queries from `row` on, tile
/// rows keys from `tile` on, or (for_keys) the other way round. stats: of the sequence and head.
template <class S, bool for_keys, class T>
__device__ __forceinline__ void differentiate(Scores<S>& scores, Scores<S>& dweights, int row,
                                              int tile, const QueryStats* stats,
                                              const AttentionProblem<T>& p) {
#pragma unroll
  for (int r = 0; r < S::kScoreRows; ++r)
#pragma unroll
    for (int n = 0; n < S::kScoreCols; ++n) {
      const int at_row = row + score_row<S>() + r, at_tile = tile + score_col() + 8 * n;
      const int query = for_keys ? at_tile : at_row, key = for_keys ? at_row : at_tile;
      float weight = 0, gradient = 0;
      if (query < p.length && key < p.length && (!p.causal || key <= query)) {
        const QueryStats of_query = stats[query];
        weight = exp2f(scores[r][n] * p.scale_log2e - of_query.lse);
        gradient = weight * (dweights[r][n] - of_query.delta);
      }
      scores[r][n] = weight;
      dweights[r][n] = gradient;
    }
}

/// for_keys: rows are keys of head blockIdx.x of the kv heads and tiles are queries; else rows are
/// queries of head blockIdx.x and tiles are keys.
template <class T, int kColumns, bool for_keys>
__global__ void __launch_bounds__(kThreads) backward(const AttentionProblem<T> p) {
  using S = Shape<kColumns>;
  const int own = static_cast<int>(blockIdx.x), sequence = static_cast<int>(blockIdx.z);
  const int row_tile = static_cast<int>(for_keys ? blockIdx.y : gridDim.y - 1 - blockIdx.y);
  const int first = row_tile * S::kSide, left = p.length - first;
  const index_t row0 = static_cast<index_t>(sequence) * p.length;
  load_rows<S>(S::kRowsA, for_keys ? p.k : p.q, row0 + first, own, left, p.size);
  load_rows<S>(S::kRowsB, for_keys ? p.v : p.dout, row0 + first, own, left, p.size);

  Sums<S> sums_a, sums_b;  // dQ or dK; dV
  clear<S>(sums_a);
  clear<S>(sums_b);
  const int begin = for_keys && p.causal ? first : 0;
  const int end = !for_keys && p.causal ? min(p.length, first + S::kSide) : p.length;
  for (int member = 0; member < (for_keys ? p.group : 1); ++member) {
    const int query_head = for_keys ? own * p.group + member : own;
    const int tile_head = for_keys ? query_head : own / p.group;
    for (int tile = begin; tile < end; tile += S::kSide) {
      __syncthreads();
      load_rows<S>(S::kTileA, for_keys ? p.q : p.k, row0 + tile, tile_head, p.length - tile,
                   p.size);
      load_rows<S>(S::kTileB, for_keys ? p.dout : p.v, row0 + tile, tile_head, p.length - tile,
                   p.size);
      __syncthreads();
      Scores<S> scores, dweights;
      multiply<S>(scores, S::kRowsA, S::kTileA, p.size);
      multiply<S>(dweights, S::kRowsB, S::kTileB, p.size);
      differentiate<S, for_keys>(scores, dweights, first, tile, p.stats_of(sequence, query_head),
                                 p);
      put_weights<S>(S::kWeightsA, dweights);
      if constexpr (for_keys) put_weights<S>(S::kWeightsB, scores);
      __syncthreads();
      add_weighted<S>(sums_a, S::kWeightsA, S::kTileA);
      if constexpr (for_keys) add_weighted<S>(sums_b, S::kWeightsB, S::kTileB);
    }
  }
  store<S>(sums_a, p.scale, for_keys ? p.dk : p.dq, row0 + first, own, left, p.size);
  if constexpr (for_keys) store<S>(sums_b, 1.0F, p.dv, row0 + first, own, left, p.size);
}

/// Calls fn with the number of 64s in a head as a constant.
template <class Fn>
void with_columns(index_t size, Fn&& fn) {
  T3D_CHECK(size <= kMaxSimtHead, "head size {}", size);
  if (size <= 64) return fn(std::integral_constant<int, 1>{});
  if (size <= 128) return fn(std::integral_constant<int, 2>{});
  fn(std::integral_constant<int, 4>{});
}

}  // namespace

void simt_forward(Queue& queue, const AttentionArgs& args, TensorView out, TensorView lse) {
  visit_activation(args.qkv.dtype, [&]<class T>(T) {
    AttentionProblem<T> problem = problem_of<T>(args, lse);
    problem.out = {out.as<T>(), out.ld};
    with_columns(args.head_size, [&](auto columns) {
      using S = Shape<columns.value>;
      launch(queue, shape_of(args, args.heads, S::kSide, kThreads, S::kForwardBytes),
             forward<T, columns.value>, problem);
    });
  });
}

void simt_backward(Queue& queue, Device& device, const AttentionArgs& args, ConstTensorView out,
                   ConstTensorView lse, ConstTensorView dout, TensorView dqkv) {
  const Tensor stats = attention_stats(queue, device, args, out, lse, dout);
  visit_activation(args.qkv.dtype, [&]<class T>(T) {
    const auto problem = backward_problem<T>(args, stats, lse, dout, dqkv);
    with_columns(args.head_size, [&](auto columns) {
      using S = Shape<columns.value>;
      launch(queue, shape_of(args, args.heads, S::kSide, kThreads, S::kBackwardBytes),
             backward<T, columns.value, false>, problem);
      launch(queue, shape_of(args, args.kv_heads, S::kSide, kThreads, S::kBackwardBytes),
             backward<T, columns.value, true>, problem);
    });
  });
}

}  // namespace t3d::cuda
