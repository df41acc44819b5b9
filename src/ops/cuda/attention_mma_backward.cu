// Flash attention backward on tensor cores, mma.sync, from sm_80 on. Speed not measured;
// instruction counts are of the main loops in sm_90a machine code, dQ and dK/dV.
//
//   1  A warp owns 16 rows, addresses from row and column: 12.5 and 10.3 instructions per mma with
//      heads of 64, 11.5 and 9.1 with 128.
//   2  32 rows where the sums leave registers for them (attention_tile.cuh says why), cheaper
//      addresses, masks only where they matter, lse and delta in one piece that cp.async fetches:
//      5.4 and 5.5; 4.0 and 3.8.
//
// Two passes of one kernel, both with the rows' sums in registers, so that every sum has one owner
// and one order: no atomics, the same bits at every run. With rows = queries it gives dQ, with rows
// = keys dK and dV (over all query heads of the kv head):
//
//           rows    tile    scores   weights P              gradients dS = P (dP - delta)
//   dQ      Q, dO   K, V    Q K^T    exp(S - lse[row])      dP = dO V^T;  dQ += dS K
//   dK, dV  K, V    Q, dO   K Q^T    exp(S - lse[column])   dP = V dO^T;  dK += dS Q, dV += P dO
//
// 3 + 4 products of 2 T T D flops: 7, where one pass has 5, but must sum dQ over blocks: by float
// atomics (no order), or through partial sums (T D floats per block of keys, written and read).
//
// What is exponentiated is transposed for dK and dV from the start, so that P and dS are A
// fragments of the next product without passing through memory. A block's rows stay in shared
// memory; tiles are double-buffered by cp.async with one barrier each.
#include "device/device.hpp"
#include "ops/cuda/attention_tile.cuh"

namespace t3d::cuda {
namespace {

constexpr int kWarps = 4, kThreads = kWarps * kWarp;

/// Rows of a warp and of a tile: what the registers hold (sums; scores and dP of a tile). Two
/// blocks fit a multiprocessor.
template <int kSize, bool for_keys>
struct Shape {
  static constexpr bool kSmall = kSize <= 64;
  static constexpr int kBands = kSmall || !for_keys ? 2 : 1;
  static constexpr int kTile = kSmall == for_keys ? 32 : 64;
  static constexpr int kRows = 16 * kBands * kWarps;

  /// Two matrices of rows, two stages of two tiles, two stages of statistics.
  template <class T>
  static constexpr int shared_bytes() {
    return Tile<T, kSize>::bytes(2 * kRows + 4 * kTile) +
           2 * kTile * static_cast<int>(sizeof(QueryStats));
  }
};

/// Statistics of the queries that a thread meets: by row, or (for_keys) by column from the tile's.
template <int kBands, bool for_keys>
struct StatsOf {
  QueryStats row[for_keys ? 1 : kBands][2];
  const QueryStats* tile;

  /// The two neighbours that a thread has in block n, in row i / 2 of a band.
  __device__ __forceinline__ void of_block(QueryStats (&stats)[4], int band, int n) const {
    if constexpr (for_keys) {
      const auto pair =
          *reinterpret_cast<const Pack<QueryStats, 2>*>(tile + 8 * n + lane_number() % 4 * 2);
#pragma unroll
      for (int i = 0; i < 4; ++i) stats[i] = pair.value[i % 2];
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) stats[i] = row[band][i / 2];
    }
  }
};

/// Scores become P.
template <int kBands, int kBlocks, bool for_keys>
__device__ __forceinline__ void weigh(WarpSums<kBands, kBlocks>& scores,
                                      const StatsOf<kBands, for_keys>& stats, float scale) {
#pragma unroll
  for (int n = 0; n < kBlocks; ++n)
#pragma unroll
    for (int band = 0; band < kBands; ++band) {
      QueryStats query[4];
      stats.of_block(query, band, n);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& score = scores.value[band][n][i];
        score = exp2f(score * scale - query[i].lse);
      }
    }
}

/// dP becomes dS (without the scale, which the sums are multiplied with at the end).
template <int kBands, int kBlocks, bool for_keys>
__device__ __forceinline__ void differentiate(WarpSums<kBands, kBlocks>& dweights,
                                              const WarpSums<kBands, kBlocks>& weights,
                                              const StatsOf<kBands, for_keys>& stats) {
#pragma unroll
  for (int n = 0; n < kBlocks; ++n)
#pragma unroll
    for (int band = 0; band < kBands; ++band) {
      QueryStats query[4];
      stats.of_block(query, band, n);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& d = dweights.value[band][n][i];
        d = weights.value[band][n][i] * (d - query[i].delta);
      }
    }
}

// grid: heads (of the rows), row tiles, sequences
template <class T, int kSize, bool for_keys>
__global__ void __launch_bounds__(kThreads, 2) backward(const AttentionProblem<T> p) {
  using HeadTile = Tile<T, kSize>;
  using S = Shape<kSize, for_keys>;
  constexpr int kBands = S::kBands, kTile = S::kTile;
  constexpr int kWarpRows = 16 * kBands;
  const HeadTile rows_a{0}, rows_b{HeadTile::bytes(S::kRows)};
  const auto tile_of = [](int stage, int which) {
    return HeadTile{HeadTile::bytes(2 * S::kRows + which * kTile),
                    HeadTile::bytes(2 * stage * kTile)};
  };
  const auto tile_stats = [](int stage) {
    auto* end = ptx::shared_memory<unsigned char>() + HeadTile::bytes(2 * S::kRows + 4 * kTile);
    return reinterpret_cast<QueryStats*>(end) + stage * kTile;
  };

  const int own = static_cast<int>(blockIdx.x);
  // Blocks with most work first: long rows of queries, early keys.
  const int row_tile = static_cast<int>(for_keys ? blockIdx.y : gridDim.y - 1 - blockIdx.y);
  const int first = row_tile * S::kRows, sequence = static_cast<int>(blockIdx.z);
  const index_t row0 = static_cast<index_t>(sequence) * p.length;
  const auto fetch_rows = [&](const HeadTile& to, const Heads<const T>& from) {
    to.template fetch<kThreads, S::kRows>(HeadTile::source_of(from, row0 + first, own, p.size),
                                          from.ld, p.length - first, p.size);
  };
  fetch_rows(rows_a, for_keys ? p.k : p.q);
  fetch_rows(rows_b, for_keys ? p.v : p.dout);

  const int begin = for_keys && p.causal ? first / kTile * kTile : 0;
  const int end = !for_keys && p.causal ? min(p.length, first + S::kRows) : p.length;
  // Tiles from `begin` on, of all query heads of a kv head one after another.
  const auto fetch = [&](int head, int at, int stage) {
    const auto fetch_tile = [&](int which, const Heads<const T>& from) {
      tile_of(stage, which)
          .template fetch<kThreads, kTile>(HeadTile::source_of(from, row0 + at, head, p.size),
                                           from.ld, p.length - at, p.size);
    };
    fetch_tile(0, for_keys ? p.q : p.k);
    fetch_tile(1, for_keys ? p.dout : p.v);
    // Queries behind the end have rows of zeros, lse 0 and delta 0: they add nothing.
    if (const int i = static_cast<int>(threadIdx.x) * 2; for_keys && i < kTile)
      ptx::cp_async_16(tile_stats(stage) + i, p.stats_of(sequence, head) + at + i,
                       max(0, min(16, (p.length - at - i) * 8)));
    ptx::cp_async_commit();
  };
  int head = for_keys ? own * p.group : own / p.group;  // of the tile
  const int last_head = for_keys ? head + p.group - 1 : head;
  fetch(head, begin, 0);

  const int warp_first = static_cast<int>(threadIdx.x) / kWarp * kWarpRows;
  const int warp_row = first + warp_first;
  StatsOf<kBands, for_keys> stats = {};
  if constexpr (!for_keys) {
    const QueryStats* of_head = p.stats_of(sequence, own);
    const int row = warp_row + lane_number() / 4;
#pragma unroll
    for (int i = 0; i < 2 * kBands; ++i)
      if (row + 8 * i < p.length) stats.row[i / 2][i % 2] = of_head[row + 8 * i];
  }
  const WarpRows<T, kSize, kBands, false> own_a(rows_a, warp_first), own_b(rows_b, warp_first);
  WarpSums<kBands, kSize / 8> sums_a, sums_b;  // dQ or dK; dV
  sums_a.clear();
  sums_b.clear();
  for (int at = begin, stage = 0; head <= last_head; stage ^= 1) {
    ptx::cp_async_wait<0>();
    __syncthreads();  // this tile is there for all, and all are done with the one before
    const int start = at;
    at += kTile;
    if (at >= end) {
      at = begin;
      ++head;
    }
    if (head <= last_head) fetch(head, at, stage ^ 1);
    // All above the diagonal?
    if (p.causal && (for_keys ? start + kTile <= warp_row : start >= warp_row + kWarpRows))
      continue;
    const HeadTile a = tile_of(stage, 0), b = tile_of(stage, 1);
    stats.tile = tile_stats(stage);
    WarpSums<kBands, kTile / 8> scores, dweights;
    multiply_scores(scores, own_a, a);
    const bool diagonal =
        p.causal && (for_keys ? start < warp_row + kWarpRows : start + kTile > warp_row);
    if (diagonal || (!for_keys && start + kTile > p.length))
      mask<for_keys>(scores, warp_row + lane_number() / 4, start + lane_number() % 4 * 2, p.length,
                     p.causal);
    weigh(scores, stats, p.scale_log2e);
    multiply_scores(dweights, own_b, b);
    if constexpr (for_keys) add_weighted(sums_b, scores, b);
    differentiate(dweights, scores, stats);
    add_weighted(sums_a, dweights, a);
  }
  float scales[kBands][2], ones[kBands][2];
#pragma unroll
  for (int i = 0; i < 2 * kBands; ++i) {
    scales[i / 2][i % 2] = p.scale;
    ones[i / 2][i % 2] = 1;
  }
  store_sums(sums_a, scales, rows_a, warp_first, for_keys ? p.dk : p.dq, row0 + warp_row, own,
             p.length - warp_row, p.size, p.wide_rows);
  if constexpr (for_keys)
    store_sums(sums_b, ones, rows_b, warp_first, p.dv, row0 + warp_row, own, p.length - warp_row,
               p.size, p.wide_rows);
}

template <class T, int kSize, bool for_keys>
void launch_pass(Queue& queue, const AttentionArgs& args, const AttentionProblem<T>& problem) {
  using S = Shape<kSize, for_keys>;
  launch(queue,
         shape_of(args, for_keys ? args.kv_heads : args.heads, S::kRows, kThreads,
                  S::template shared_bytes<T>()),
         backward<T, kSize, for_keys>, problem);
}

template <class T>
void backward_of(Queue& queue, const AttentionArgs& args, const Tensor& stats, ConstTensorView lse,
                 ConstTensorView dout, TensorView dqkv) {
  AttentionProblem<T> problem = backward_problem<T>(args, stats, lse, dout, dqkv);
  problem.wide_rows = aligned_16(dqkv);
  with_head_size(args.head_size, [&](auto size) {
    launch_pass<T, size.value, false>(queue, args, problem);
    launch_pass<T, size.value, true>(queue, args, problem);
  });
}

}  // namespace

void mma_backward(Queue& queue, Device& device, const AttentionArgs& args, ConstTensorView out,
                  ConstTensorView lse, ConstTensorView dout, TensorView dqkv) {
  const Tensor stats = attention_stats(queue, device, args, out, lse, dout);
  if (args.qkv.dtype == DType::bf16)
    backward_of<Bf16>(queue, args, stats, lse, dout, dqkv);
  else
    backward_of<F16>(queue, args, stats, lse, dout, dqkv);
}

}  // namespace t3d::cuda
