// Flash attention forward on tensor cores (FlashAttention-2: Dao 2023, algorithm 1), mma.sync, from
// sm_80 on. Speed not measured.
//
// A block owns 128 queries of one head, a warp 16 of them: scores, probabilities and output stay in
// its registers. Keys and values come in double-buffered tiles by cp.async, one barrier per tile.
// Under a causal mask tiles above the diagonal are not visited, only tiles that cross it are
// masked, and the longest blocks start first. Softmax in base 2: one multiplication less per score.
#include "ops/cuda/attention_tile.cuh"

namespace t3d::cuda {
namespace {

constexpr int kWarps = 8, kThreads = kWarps * 32, kQueries = 16 * kWarps, kKeys = 64;

template <class T, int kSize>
constexpr int shared_bytes() {
  return Tile<T, kSize>::bytes(kQueries + 4 * kKeys);
}

/// One row's running softmax; a thread keeps two rows (g and g + 8), shared by four lanes.
struct Softmax {
  float max[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};

  /// Scores become weights; returns what older sums must be multiplied with.
  template <int kBlocks>
  __device__ __forceinline__ void update(WarpSums<kBlocks>& scores, float scale,
                                         float (&older)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float top = -INFINITY;
#pragma unroll
      for (int n = 0; n < kBlocks; ++n)
        top = fmaxf(top, fmaxf(scores.value[n][2 * half], scores.value[n][2 * half + 1]));
      top = fmaxf(top, __shfl_xor_sync(0xffffffffU, top, 1));
      top = fmaxf(top, __shfl_xor_sync(0xffffffffU, top, 2));
      top = fmaxf(max[half], top * scale);
      const float base = top == -INFINITY ? 0.0F : top;  // nothing seen yet
      older[half] = exp2f(max[half] - base);
      max[half] = top;
      float sum = 0;
#pragma unroll
      for (int n = 0; n < kBlocks; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float& score = scores.value[n][2 * half + i];
          score = exp2f(score * scale - base);
          sum += score;
        }
      total[half] = total[half] * older[half] + sum;
    }
  }
  __device__ __forceinline__ void finish() {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      total[half] += __shfl_xor_sync(0xffffffffU, total[half], 1);
      total[half] += __shfl_xor_sync(0xffffffffU, total[half], 2);
    }
  }
};

// query, key: global numbers of this lane's first row and column.
template <int kBlocks>
__device__ __forceinline__ void mask(WarpSums<kBlocks>& scores, int query, int key, int length,
                                     bool causal) {
#pragma unroll
  for (int n = 0; n < kBlocks; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = key + 8 * n + i % 2;
      if (at >= length || (causal && at > query + i / 2 * 8)) scores.value[n][i] = -INFINITY;
    }
}

// grid: query tiles (last first), heads, sequences
template <class T, int kSize>
__global__ void __launch_bounds__(kThreads, 2 - kSize / 128) forward(const AttentionProblem<T> p) {
  using HeadTile = Tile<T, kSize>;
  T* shared = ptx::shared_memory<T>();
  const HeadTile queries{shared};
  const auto keys_of = [&](int stage) {
    return HeadTile{shared + (kQueries + 2 * stage * kKeys) * kSize};
  };
  const auto values_of = [&](int stage) {
    return HeadTile{shared + (kQueries + (2 * stage + 1) * kKeys) * kSize};
  };
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kQueries;
  const int head = static_cast<int>(blockIdx.y), kv = head / p.group;
  const index_t row0 = static_cast<index_t>(blockIdx.z) * p.length;
  const int keys = p.causal ? min(p.length, first + kQueries) : p.length;
  const int tiles = (keys + kKeys - 1) / kKeys;
  const auto fetch = [&](int tile) {
    const int key = tile * kKeys;
    keys_of(tile % 2).template fetch<kThreads>(p.k, row0 + key, kv, kKeys, p.length - key, p.size);
    values_of(tile % 2).template fetch<kThreads>(p.v, row0 + key, kv, kKeys, p.length - key,
                                                 p.size);
  };
  queries.template fetch<kThreads>(p.q, row0 + first, head, kQueries, p.length - first, p.size);
  fetch(0);
  ptx::cp_async_commit();

  WarpSums<kSize / 8> sums;
  sums.clear();
  Softmax softmax;
  const int query = first + warp * 16 + lane / 4;
  for (int tile = 0; tile < tiles; ++tile) {
    ptx::cp_async_wait<0>();
    __syncthreads();  // this tile is there for all, and all are done with the one before
    if (tile + 1 < tiles) fetch(tile + 1);
    ptx::cp_async_commit();
    WarpSums<kKeys / 8> scores;
    multiply_scores(scores, queries, warp * 16, keys_of(tile % 2));
    const int key = tile * kKeys;
    if (key + kKeys > p.length || (p.causal && key + kKeys > first + warp * 16))
      mask(scores, query, key + lane % 4 * 2, p.length, p.causal);
    float older[2];
    softmax.update(scores, p.scale * kLog2E, older);
#pragma unroll
    for (int n = 0; n < kSize / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) sums.value[n][i] *= older[i / 2];
    add_weighted(sums, scores, values_of(tile % 2));
  }
  softmax.finish();
  const float factor[2] = {1.0F / softmax.total[0], 1.0F / softmax.total[1]};
  // The warp's own queries are not needed any more.
  store_sums(sums, factor, queries, warp * 16, p.out, row0 + first + warp * 16, head,
             p.length - first - warp * 16, p.size, p.wide_rows);
  if (lane % 4 != 0) return;
#pragma unroll
  for (int half = 0; half < 2; ++half)
    if (query + 8 * half < p.length)
      p.lse[(row0 + query + 8 * half) * p.lse_ld + head] =
          (softmax.max[half] + log2f(softmax.total[half])) * kLn2;
}

template <class T, int kSize>
void launch_forward(Queue& queue, const AttentionArgs& args, TensorView out, TensorView lse) {
  AttentionProblem<T> problem = problem_of<T>(args, lse);
  problem.out = {out.as<T>(), out.ld};
  problem.wide_rows = aligned_16(out);
  LaunchShape shape;
  shape.threads = kThreads;
  shape.blocks_x = blocks_for(args.length, kQueries);
  shape.blocks_y = args.heads;
  shape.blocks_z = args.sequences;
  shape.shared_bytes = shared_bytes<T, kSize>();
  launch(queue, shape, forward<T, kSize>, problem);
}

template <class T>
void forward_of(Queue& queue, const AttentionArgs& args, TensorView out, TensorView lse) {
  if (args.head_size <= 64)
    launch_forward<T, 64>(queue, args, out, lse);
  else
    launch_forward<T, 128>(queue, args, out, lse);
}

}  // namespace

void mma_forward(Queue& queue, const AttentionArgs& args, TensorView out, TensorView lse) {
  if (args.qkv.dtype == DType::bf16)
    forward_of<Bf16>(queue, args, out, lse);
  else
    forward_of<F16>(queue, args, out, lse);
}

}  // namespace t3d::cuda
