// Flash attention backward on tensor cores, mma.sync, from sm_80 on. Speed not measured.
//
// Two passes of one kernel, both with the rows' sums in registers, so that every sum has one owner
// and one order: no atomics, the same bits at every run. With rows = queries it gives dQ, with rows
// = keys dK and dV (over all query heads of the kv head):
//
//           rows      tile       scores    weights P            gradients dS = P (dP - delta) scale
//   dQ      Q, dO     K, V       Q K^T     exp(S - lse[row])    dP = dO V^T;  dQ += dS K
//   dK, dV  K, V      Q, dO      K Q^T     exp(S - lse[col])    dP = V dO^T;  dK += dS Q, dV += P
//   dO
//
// 3 + 4 products of 2 T T D flops: 7, where one pass with atomic sums of dQ has 5 and adds T D
// floats of traffic per tile of keys. A block's rows stay in shared memory; tiles are
// double-buffered by cp.async with one barrier each. What is exponentiated is transposed for dK and
// dV from the start, so that P and dS are A fragments of the next product without passing through
// memory.
#include "device/device.hpp"
#include "ops/cuda/attention_tile.cuh"

namespace t3d::cuda {
namespace {

/// Rows per block and tile: shared memory holds 2 * rows + 4 * tile rows of the head.
template <int kSize>
struct Shape {
  static constexpr int kWarps = kSize == 64 ? 8 : 4, kThreads = kWarps * 32, kRows = 16 * kWarps;
  static constexpr int kTile = kSize == 64 ? 64 : 32;
  template <class T>
  static constexpr int shared_bytes() {
    return Tile<T, kSize>::bytes(2 * kRows + 4 * kTile) + 2 * 2 * kTile * 4;
  }
};

/// What the passes need to know of one query: lse (in base 2) and delta.
struct QueryStats {
  float lse, delta;
};

template <class T>
__device__ __forceinline__ QueryStats stats_of(const AttentionProblem<T>& p, index_t row0,
                                               int query, int head) {
  if (query >= p.length) return {INFINITY, 0};  // weight 0
  const index_t row = row0 + query;
  return {p.lse[row * p.lse_ld + head] * kLog2E, p.delta[row * p.heads + head]};
}

/// Scores and dP become P and dS in place.
template <int kBlocks, bool for_keys>
__device__ __forceinline__ void differentiate(WarpSums<kBlocks>& scores,
                                              WarpSums<kBlocks>& dweights,
                                              const QueryStats (&row)[2], const float* tile_lse,
                                              const float* tile_delta, float scale, bool masked,
                                              bool causal, int at_row, int at_tile, int length) {
  const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int n = 0; n < kBlocks; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int col = 8 * n + 2 * t + i % 2;
      const float lse = for_keys ? tile_lse[col] : row[i / 2].lse;
      const float delta = for_keys ? tile_delta[col] : row[i / 2].delta;
      float weight = exp2f(scores.value[n][i] * (scale * kLog2E) - lse);
      if (masked) {
        const int own = at_row + i / 2 * 8, other = at_tile + col;
        const int query = for_keys ? other : own, key = for_keys ? own : other;
        if (key >= length || (causal && key > query)) weight = 0;
      }
      scores.value[n][i] = weight;
      dweights.value[n][i] = weight * (dweights.value[n][i] - delta) * scale;
    }
}

// grid: row tiles, heads (of the rows), sequences
template <class T, int kSize, bool for_keys>
__global__ void __launch_bounds__(Shape<kSize>::kThreads, 1) backward(const AttentionProblem<T> p) {
  using HeadTile = Tile<T, kSize>;
  using S = Shape<kSize>;
  constexpr int kBlocks = S::kTile / 8;
  T* shared = ptx::shared_memory<T>();
  const HeadTile rows_a{shared}, rows_b{shared + S::kRows * kSize};
  const auto tile_of = [&](int stage, int which) {
    return HeadTile{shared + (2 * S::kRows + (2 * stage + which) * S::kTile) * kSize};
  };
  float* stats = reinterpret_cast<float*>(shared + (2 * S::kRows + 4 * S::kTile) * kSize);

  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int first = static_cast<int>(blockIdx.x) * S::kRows, own = static_cast<int>(blockIdx.y);
  const int warp_row = first + warp * 16;
  const index_t row0 = static_cast<index_t>(blockIdx.z) * p.length;
  rows_a.template fetch<S::kThreads>(for_keys ? p.k : p.q, row0 + first, own, S::kRows,
                                     p.length - first, p.size);
  rows_b.template fetch<S::kThreads>(for_keys ? p.v : p.dout, row0 + first, own, S::kRows,
                                     p.length - first, p.size);

  const int begin = for_keys && p.causal ? first / S::kTile : 0;
  const int end_at = !for_keys && p.causal ? min(p.length, first + S::kRows) : p.length;
  const int per_head = (end_at + S::kTile - 1) / S::kTile - begin;
  const int steps = per_head * (for_keys ? p.group : 1);
  // Step -> tile and query head; all tiles of one head after another.
  const auto head_of = [&](int step) { return for_keys ? own * p.group + step / per_head : own; };
  const auto start_of = [&](int step) { return (begin + step % per_head) * S::kTile; };
  const auto fetch = [&](int step) {
    const int at = start_of(step), head = for_keys ? head_of(step) : own / p.group;
    tile_of(step % 2, 0)
        .template fetch<S::kThreads>(for_keys ? p.q : p.k, row0 + at, head, S::kTile, p.length - at,
                                     p.size);
    tile_of(step % 2, 1)
        .template fetch<S::kThreads>(for_keys ? p.dout : p.v, row0 + at, head, S::kTile,
                                     p.length - at, p.size);
    if (for_keys && static_cast<int>(threadIdx.x) < S::kTile) {
      const int i = static_cast<int>(threadIdx.x);
      const QueryStats query = stats_of(p, row0, at + i, head);
      stats[step % 2 * 2 * S::kTile + i] = query.lse;
      stats[(step % 2 * 2 + 1) * S::kTile + i] = query.delta;
    }
  };
  fetch(0);
  ptx::cp_async_commit();

  QueryStats row[2] = {};
  if (!for_keys) {
    row[0] = stats_of(p, row0, warp_row + lane / 4, own);
    row[1] = stats_of(p, row0, warp_row + lane / 4 + 8, own);
  }
  WarpSums<kSize / 8> sums_a, sums_b;  // dQ or dK; dV
  sums_a.clear();
  sums_b.clear();
  for (int step = 0; step < steps; ++step) {
    ptx::cp_async_wait<0>();
    __syncthreads();
    if (step + 1 < steps) fetch(step + 1);
    ptx::cp_async_commit();
    const HeadTile a = tile_of(step % 2, 0), b = tile_of(step % 2, 1);
    const int at = start_of(step);
    WarpSums<kBlocks> scores, dweights;
    multiply_scores(scores, rows_a, warp * 16, a);
    multiply_scores(dweights, rows_b, warp * 16, b);
    // Rows beyond the length are zero, but their weights may be infinite.
    const bool edge = at + S::kTile > p.length || warp_row + 16 > p.length;
    const bool diagonal = p.causal && (for_keys ? at < warp_row + 15 : at + S::kTile > warp_row);
    differentiate<kBlocks, for_keys>(scores, dweights, row, stats + step % 2 * 2 * S::kTile,
                                     stats + (step % 2 * 2 + 1) * S::kTile, p.scale,
                                     edge || diagonal, p.causal, warp_row + lane / 4, at, p.length);
    add_weighted(sums_a, dweights, a);
    if constexpr (for_keys) add_weighted(sums_b, scores, b);
  }
  // The warp's own rows become the stage of its output.
  constexpr float kOne[2] = {1, 1};
  const Heads<T>& to = for_keys ? p.dk : p.dq;
  store_sums(sums_a, kOne, rows_a, warp * 16, to, row0 + warp_row, own, p.length - warp_row, p.size,
             p.wide_rows);
  if constexpr (for_keys)
    store_sums(sums_b, kOne, rows_b, warp * 16, p.dv, row0 + warp_row, own, p.length - warp_row,
               p.size, p.wide_rows);
}

template <class T, int kSize>
void launch_backward(Queue& queue, const AttentionArgs& args, const AttentionProblem<T>& problem) {
  using S = Shape<kSize>;
  LaunchShape shape;
  shape.threads = S::kThreads;
  shape.blocks_x = blocks_for(args.length, S::kRows);
  shape.blocks_y = args.heads;
  shape.blocks_z = args.sequences;
  shape.shared_bytes = S::template shared_bytes<T>();
  launch(queue, shape, backward<T, kSize, false>, problem);
  shape.blocks_y = args.kv_heads;
  launch(queue, shape, backward<T, kSize, true>, problem);
}

template <class T>
void backward_of(Queue& queue, const AttentionArgs& args, const Tensor& delta, ConstTensorView lse,
                 ConstTensorView dout, TensorView dqkv) {
  AttentionProblem<T> problem = problem_of<T>(args, lse);
  split_heads<T>(args, dqkv, problem.dq, problem.dk, problem.dv);
  problem.dout = {dout.as<T>(), dout.ld};
  problem.delta = delta.view().as<float>();
  problem.wide_rows = aligned_16(dqkv);
  if (args.head_size <= 64)
    launch_backward<T, 64>(queue, args, problem);
  else
    launch_backward<T, 128>(queue, args, problem);
}

}  // namespace

void mma_backward(Queue& queue, Device& device, const AttentionArgs& args, ConstTensorView out,
                  ConstTensorView lse, ConstTensorView dout, TensorView dqkv) {
  const Tensor delta = attention_delta(queue, device, args, out, dout);
  if (args.qkv.dtype == DType::bf16)
    backward_of<Bf16>(queue, args, delta, lse, dout, dqkv);
  else
    backward_of<F16>(queue, args, delta, lse, dout, dqkv);
}

}  // namespace t3d::cuda
