// Matmul on tensor cores by warp-wide mma instructions: bf16, fp16, and fp32 rounded to tf32.
//
//   block   a tile of C (gemm_plan.hpp); its operands come through a ring of stages in shared
//           memory, filled by cp.async several steps ahead, one barrier per step
//   warp    64x64 of C in registers (128 sums per thread): 32 products per 8 fragment loads, so the
//           tensor cores wait for neither shared memory nor registers; the fragments of the next
//           half step are loaded before the products of this one
//   end     sums pass through shared memory once more, so that C is read and written in whole
//           16-byte packs of neighbours, and so that bias and C join in fp32
//
// Splitting K fills the device where C has few tiles; the slices write fp32 partial sums. Speeds
// are not measured. On Hopper mma.sync cannot reach the rate of wgmma; that needs another kernel.
#pragma once
#include <type_traits>

#include "ops/cuda/gemm_operand.cuh"
#include "ops/cuda/gemm_output.cuh"

namespace t3d::cuda {

/// One warp's view of its block.
template <int tile_index>
struct WarpTile {
  static constexpr TileShape kTile = kMmaTiles[tile_index];
  static constexpr int kRows = kTile.warp_m, kCols = kTile.warp_n;
  static constexpr int kBlocksM = kRows / 16, kBlocksN = kCols / 16;  // 16 wide each
  static constexpr int kSlabStride = kCols + 8;  // floats; rows start 8 banks apart
  static_assert(kTile.threads() / 32 * 16 * kSlabStride * 4 <= kTile.shared_bytes());

  int row, col;  // in the block's tile

  __device__ WarpTile() {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    row = warp / (kTile.n / kCols) * kRows;
    col = warp % (kTile.n / kCols) * kCols;
  }
};

/// What one warp multiplies at a time: 32 bytes of depth.
template <class Warp>
struct Fragments {
  std::uint32_t a[Warp::kBlocksM][4];
  std::uint32_t b[Warp::kBlocksN][4];

  template <class T, class TileA, class TileB>
  __device__ __forceinline__ void load(const Warp& warp, const std::byte* stage, int part) {
#pragma unroll
    for (int i = 0; i < Warp::kBlocksM; ++i)
      load_fragment<T, TileA, true>(a[i], stage, warp.row + 16 * i, part);
#pragma unroll
    for (int j = 0; j < Warp::kBlocksN; ++j)
      load_fragment<T, TileB, false>(b[j], stage + TileA::kBytes, warp.col + 16 * j, part);
  }
};

template <class Warp>
using Sums = float[Warp::kBlocksM][2 * Warp::kBlocksN][4];

template <class T, class Warp>
__device__ __forceinline__ void multiply(Sums<Warp>& sums, const Fragments<Warp>& x) {
#pragma unroll
  for (int i = 0; i < Warp::kBlocksM; ++i)
#pragma unroll
    for (int j = 0; j < 2 * Warp::kBlocksN; ++j) {
      const std::uint32_t b[2] = {x.b[j / 2][j % 2 * 2], x.b[j / 2][j % 2 * 2 + 1]};
      if constexpr (std::is_same_v<T, float>)
        ptx::mma_m16n8k8_tf32(sums[i][j], x.a[i], b);
      else
        ptx::mma_m16n8k16<T>(sums[i][j], x.a[i], b);
    }
}

/// Writes 16 rows of sums from shared memory to rows `row`.. of C.
template <class C, class Warp>
__device__ __forceinline__ void store_slab(const GemmProblem& problem, const GemmOutput& out,
                                           float scale, const float* slab, int row, int col) {
  const int lane = static_cast<int>(threadIdx.x) & 31;
  if (out.vector) {
    constexpr int kLanes = Warp::kCols / kPack<C>;  // per row
#pragma unroll
    for (int r = lane / kLanes; r < 16; r += 32 / kLanes) {
      const int c = lane % kLanes * kPack<C>;
      if (row + r >= problem.m || col + c >= problem.n) continue;
      float sum[static_cast<std::size_t>(kPack<C>)];
#pragma unroll
      for (int j = 0; j < kPack<C>; j += 4) {
        const auto four =
            *reinterpret_cast<const Pack<float, 4>*>(slab + r * Warp::kSlabStride + c + j);
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[j + i] = four.value[i];
      }
      finish<C>(out, scale, row + r, col + c, problem.n, sum);
    }
    return;
  }
  for (int i = lane; i < 16 * Warp::kCols; i += 32) {
    const int r = i / Warp::kCols, c = i % Warp::kCols;
    if (row + r >= problem.m || col + c >= problem.n) continue;
    float sum[1] = {slab[r * Warp::kSlabStride + c]};
    finish<C>(out, scale, row + r, col + c, problem.n, sum);
  }
}

template <class T, class Warp>
__device__ __forceinline__ void store_sums(const GemmProblem& problem, const Sums<Warp>& sums,
                                           const Warp& warp, TileAt tile, std::byte* shared) {
  const int lane = static_cast<int>(threadIdx.x) & 31;
  GemmOutput out = problem.out;
  if (problem.split_stride > 0)
    out.c = static_cast<float*>(out.c) + static_cast<index_t>(blockIdx.z) * problem.split_stride;
  const float scale = scale_of(out);
  float* slab = reinterpret_cast<float*>(shared) +
                static_cast<int>(threadIdx.x) / 32 * 16 * Warp::kSlabStride;
  float* own = slab + lane / 4 * Warp::kSlabStride + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < Warp::kBlocksM; ++i) {
#pragma unroll
    for (int j = 0; j < 2 * Warp::kBlocksN; ++j) {
      const float(&s)[4] = sums[i][j];
      *reinterpret_cast<float2*>(own + 8 * j) = make_float2(s[0], s[1]);
      *reinterpret_cast<float2*>(own + 8 * Warp::kSlabStride + 8 * j) = make_float2(s[2], s[3]);
    }
    __syncwarp();
    const int row = tile.row + warp.row + 16 * i, col = tile.col + warp.col;
    if (out.fp32)
      store_slab<float, Warp>(problem, out, scale, slab, row, col);
    else
      store_slab<T, Warp>(problem, out, scale, slab, row, col);
    __syncwarp();
  }
}

template <class T, int tile_index, bool transpose_a, bool transpose_b, bool vector>
__global__ void __launch_bounds__(kMmaTiles[tile_index].threads(), kMmaTiles[tile_index].blocks)
    gemm_mma(const GemmProblem problem) {
  using Warp = WarpTile<tile_index>;
  constexpr TileShape kTile = Warp::kTile;
  constexpr int kThreads = kTile.threads(), kStages = kTile.stages, kParts = kTile.depth_bytes / 32;
  using TileA = OperandTile<T, kTile.m, kTile.depth_bytes, !transpose_a>;
  using TileB = OperandTile<T, kTile.n, kTile.depth_bytes, transpose_b>;
  using LoadA =
      std::conditional_t<vector, AsyncLoader<T, TileA, kThreads>, ScalarLoader<T, TileA, kThreads>>;
  using LoadB =
      std::conditional_t<vector, AsyncLoader<T, TileB, kThreads>, ScalarLoader<T, TileB, kThreads>>;
  std::byte* shared = ptx::shared_memory<std::byte>();
  const Warp warp;
  const TileAt tile = tile_of_block(problem, kTile.m, kTile.n);
  const int depth0 = static_cast<int>(blockIdx.z) * problem.depth_per_split;
  const int depth1 = min(problem.k, depth0 + problem.depth_per_split);
  const int steps = (depth1 - depth0 + TileA::kDepth - 1) / TileA::kDepth;
  LoadA load_a(problem.a, problem.lda, tile.row, problem.m, depth0, depth1);
  LoadB load_b(problem.b, problem.ldb, tile.col, problem.n, depth0, depth1);

#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    std::byte* stage = shared + s * kTile.stage_bytes();
    if (s < steps) {
      load_a.fetch(stage);
      load_b.fetch(stage + TileA::kBytes);
      load_a.deposit(stage);
      load_b.deposit(stage + TileA::kBytes);
    }
    ptx::cp_async_commit();
  }
  ptx::cp_async_wait<kStages - 2>();
  __syncthreads();

  Sums<Warp> sums = {};
  Fragments<Warp> fragments[2];
  if (steps > 0) fragments[0].template load<T, TileA, TileB>(warp, shared, 0);
  int now = 0, filling = kStages - 1;  // stages
  for (int step = 0; step < steps; ++step) {
    const std::byte* stage = shared + now * kTile.stage_bytes();
    std::byte* target = shared + filling * kTile.stage_bytes();
    const bool more = step + kStages - 1 < steps;
    now = now + 1 == kStages ? 0 : now + 1;
    filling = filling + 1 == kStages ? 0 : filling + 1;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      if (part + 1 < kParts) {
        fragments[(part + 1) % 2].template load<T, TileA, TileB>(warp, stage, part + 1);
      } else {
        // The next stage is there, and every warp has read all of this one.
        ptx::cp_async_wait<kStages - 2>();
        __syncthreads();
        if (step + 1 < steps)
          fragments[0].template load<T, TileA, TileB>(warp, shared + now * kTile.stage_bytes(), 0);
      }
      if (part == 0) {
        if (more) {
          load_a.fetch(target);
          load_b.fetch(target + TileA::kBytes);
        }
        ptx::cp_async_commit();
      }
      multiply<T, Warp>(sums, fragments[part % 2]);
      if (part == 0 && more) {
        load_a.deposit(target);
        load_b.deposit(target + TileA::kBytes);
      }
    }
  }
  // Behind the last barrier nobody reads or fills a stage: shared memory is free.
  store_sums<T, Warp>(problem, sums, warp, tile, shared);
}

namespace mma {

template <class T, int tile_index, bool transpose_a, bool transpose_b>
void launch_tile(Queue& queue, const GemmPlan& plan, const GemmProblem& problem) {
  constexpr TileShape tile = kMmaTiles[tile_index];
  constexpr bool kVector = tile_index != kMmaUnaligned;
  const LaunchShape shape{blocks_for(problem.m, tile.m) * blocks_for(problem.n, tile.n), 1,
                          plan.splits, tile.threads(), tile.shared_bytes()};
  launch(queue, shape, gemm_mma<T, tile_index, transpose_a, transpose_b, kVector>, problem);
}

template <class T, bool transpose_a, bool transpose_b>
void launch_form(Queue& queue, const GemmPlan& plan, const GemmProblem& problem) {
  if constexpr (sizeof(T) == 2)  // 32-bit fragments need too many registers
    if (plan.tile == kMmaWide)
      return launch_tile<T, kMmaWide, transpose_a, transpose_b>(queue, plan, problem);
  switch (plan.tile) {
    case kMmaSquare:
      return launch_tile<T, kMmaSquare, transpose_a, transpose_b>(queue, plan, problem);
    case kMmaSmall:
      return launch_tile<T, kMmaSmall, transpose_a, transpose_b>(queue, plan, problem);
    case kMmaUnaligned:
      return launch_tile<T, kMmaUnaligned, transpose_a, transpose_b>(queue, plan, problem);
    default: T3D_CHECK(false, "no kernel for tile {} of this format", plan.tile);
  }
}

}  // namespace mma

template <class T>
void launch_mma(Queue& queue, const GemmArgs& args, const GemmPlan& plan,
                const GemmProblem& problem) {
  if (args.transpose_a && args.transpose_b)
    mma::launch_form<T, true, true>(queue, plan, problem);
  else if (args.transpose_a)
    mma::launch_form<T, true, false>(queue, plan, problem);
  else if (args.transpose_b)
    mma::launch_form<T, false, true>(queue, plan, problem);
  else
    mma::launch_form<T, false, false>(queue, plan, problem);
}

}  // namespace t3d::cuda
