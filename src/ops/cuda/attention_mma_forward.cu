// Flash attention forward on tensor cores (FlashAttention-2: Dao 2023, algorithm 1), mma.sync, from
// sm_80 on. Speed not measured; instruction counts are of the main loop in sm_90a machine code.
//
//   1  8 warps of 16 queries, addresses from row and column: 16.6 instructions per mma with heads
//   of
//      64, 9.8 with 128.
//   2  4 warps of 32 queries (half the reads of shared memory per mma: attention_tile.cuh), queries
//      kept in registers where they fit, cheaper addresses, a fast path for whole tiles, and the
//      output only rescaled where a maximum has grown by more than 2^8 since the last time: 8.3 and
//      5.2.
//
// A block owns 128 queries of one head, a warp 32 of them: scores, probabilities and output stay in
// its registers. Keys and values come in double-buffered tiles by cp.async, one barrier per tile.
// Under a causal mask tiles above the diagonal are not visited, only tiles that cross it are
// masked, and the longest blocks start first. Softmax in base 2: one multiplication less per score.
#include "ops/cuda/attention_tile.cuh"

namespace t3d::cuda {
namespace {

constexpr int kBands = 2, kWarps = 4, kThreads = kWarps * kWarp, kWarpRows = 16 * kBands;
constexpr int kQueries = kWarpRows * kWarps, kKeys = 64;

template <class T, int kSize>
constexpr int shared_bytes() {
  return Tile<T, kSize>::bytes(kQueries + 4 * kKeys);
}

/// The running softmax of the warp's rows; a thread keeps two rows (g and g + 8) of each band,
/// shared by four lanes. `max` is what weights are relative to: a maximum that was seen, at most
/// kSlack (in base 2) below the largest one.
struct WarpSoftmax {
  float max[kBands][2], total[kBands][2];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < 2 * kBands; ++i) {
      max[i / 2][i % 2] = -INFINITY;
      total[i / 2][i % 2] = 0;
    }
  }

  /// Scores become weights; sums and totals so far follow where `max` moves.
  template <int kBlocks, int kColumns>
  __device__ __forceinline__ void update(WarpSums<kBands, kBlocks>& scores,
                                         WarpSums<kBands, kColumns>& sums, float scale) {
    constexpr float kSlack = 8;  // weights up to 2^8, far from fp16's limit
    float top[kBands][2];
    bool grown = false;
#pragma unroll
    for (int band = 0; band < kBands; ++band)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float& most = top[band][half];
        most = -INFINITY;
#pragma unroll
        for (int n = 0; n < kBlocks; ++n)
          most = fmaxf(most,
                       fmaxf(scores.value[band][n][2 * half], scores.value[band][n][2 * half + 1]));
        most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 1));
        most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 2)) * scale;
        grown = grown || most > max[band][half] + kSlack;
      }
    if (__any_sync(kAllLanes, grown)) rescale(top, sums);
#pragma unroll
    for (int band = 0; band < kBands; ++band)
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int n = 0; n < kBlocks; ++n) {
          float& score = scores.value[band][n][i];
          score = exp2f(score * scale - max[band][i / 2]);
          total[band][i / 2] += score;
        }
  }

  template <int kColumns>
  __device__ __forceinline__ void rescale(const float (&top)[kBands][2],
                                          WarpSums<kBands, kColumns>& sums) {
#pragma unroll
    for (int band = 0; band < kBands; ++band)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float next = fmaxf(max[band][half], top[band][half]);
        const float older = exp2f(max[band][half] - next);
        max[band][half] = next;
        total[band][half] *= older;
#pragma unroll
        for (int n = 0; n < kColumns; ++n) {
          sums.value[band][n][2 * half] *= older;
          sums.value[band][n][2 * half + 1] *= older;
        }
      }
  }

  __device__ __forceinline__ void finish() {
#pragma unroll
    for (int i = 0; i < 2 * kBands; ++i) {
      float& sum = total[i / 2][i % 2];
      sum += __shfl_xor_sync(kAllLanes, sum, 1);
      sum += __shfl_xor_sync(kAllLanes, sum, 2);
    }
  }
};

template <class T, int kSize>
__global__ void __launch_bounds__(kThreads, 2) forward(const AttentionProblem<T> p) {
  using HeadTile = Tile<T, kSize>;
  const HeadTile queries{0};
  const auto tile_of = [](int stage, int which) {
    return HeadTile{HeadTile::bytes(kQueries + which * kKeys), HeadTile::bytes(2 * stage * kKeys)};
  };
  const int lane = lane_number(), warp_first = static_cast<int>(threadIdx.x) / kWarp * kWarpRows;
  const int head = static_cast<int>(blockIdx.x), kv = head / p.group;
  const int first = static_cast<int>(gridDim.y - 1 - blockIdx.y) * kQueries;  // long rows first
  const index_t row0 = static_cast<index_t>(blockIdx.z) * p.length;
  const int keys = p.causal ? min(p.length, first + kQueries) : p.length;
  const auto fetch = [&](int key, int stage) {
    tile_of(stage, 0).template fetch<kThreads, kKeys>(
        HeadTile::source_of(p.k, row0 + key, kv, p.size), p.k.ld, p.length - key, p.size);
    tile_of(stage, 1).template fetch<kThreads, kKeys>(
        HeadTile::source_of(p.v, row0 + key, kv, p.size), p.v.ld, p.length - key, p.size);
    ptx::cp_async_commit();
  };
  queries.template fetch<kThreads, kQueries>(HeadTile::source_of(p.q, row0 + first, head, p.size),
                                             p.q.ld, p.length - first, p.size);
  ptx::cp_async_commit();
  fetch(0, 0);
  WarpRows<T, kSize, kBands, (kSize <= 64)> rows(queries, warp_first);
  ptx::cp_async_wait<1>();
  __syncthreads();
  rows.keep();

  WarpSums<kBands, kSize / 8> sums;
  sums.clear();
  WarpSoftmax softmax;
  softmax.clear();
  const int warp_query = first + warp_first, query = warp_query + lane / 4;
  for (int key = 0; key < keys; key += kKeys) {
    const int stage = key / kKeys % 2;
    ptx::cp_async_wait<0>();
    __syncthreads();  // this tile is there for all, and all are done with the one before
    if (key + kKeys < keys) fetch(key + kKeys, stage ^ 1);
    if (p.causal && key >= warp_query + kWarpRows) continue;  // all above the diagonal
    WarpSums<kBands, kKeys / 8> scores;
    multiply_scores(scores, rows, tile_of(stage, 0));
    if (key + kKeys > p.length || (p.causal && key + kKeys > warp_query))
      mask<false>(scores, query, key + lane % 4 * 2, p.length, p.causal);
    softmax.update(scores, sums, p.scale_log2e);
    add_weighted(sums, scores, tile_of(stage, 1));
  }
  softmax.finish();
  float factor[kBands][2];
#pragma unroll
  for (int i = 0; i < 2 * kBands; ++i) factor[i / 2][i % 2] = 1.0F / softmax.total[i / 2][i % 2];
  // The stage is the warp's own queries, which are not needed any more.
  store_sums(sums, factor, queries, warp_first, p.out, row0 + warp_query, head,
             p.length - warp_query, p.size, p.wide_rows);
  if (lane % 4 != 0) return;
#pragma unroll
  for (int i = 0; i < 2 * kBands; ++i) {
    const int at = query + 8 * i;
    if (at < p.length)
      p.lse[(row0 + at) * p.lse_ld + head] =
          (softmax.max[i / 2][i % 2] + log2f(softmax.total[i / 2][i % 2])) * kLn2;
  }
}

template <class T>
void forward_of(Queue& queue, const AttentionArgs& args, TensorView out, TensorView lse) {
  AttentionProblem<T> problem = problem_of<T>(args, lse);
  problem.out = {out.as<T>(), out.ld};
  problem.wide_rows = aligned_16(out);
  with_head_size(args.head_size, [&](auto size) {
    launch(queue, shape_of(args, args.heads, kQueries, kThreads, shared_bytes<T, size.value>()),
           forward<T, size.value>, problem);
  });
}

}  // namespace

void mma_forward(Queue& queue, const AttentionArgs& args, TensorView out, TensorView lse) {
  if (args.qkv.dtype == DType::bf16)
    forward_of<Bf16>(queue, args, out, lse);
  else
    forward_of<F16>(queue, args, out, lse);
}

}  // namespace t3d::cuda
