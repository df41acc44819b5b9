// fp32 matmul without tensor cores: every product and sum in fp32.
//
// A block computes a 128x128 (or 64x64) tile of C, every thread 8x8 of it as four 4x4 squares: per
// step of K a thread reads 16 numbers from shared memory for 64 multiply-adds. Shared memory holds
// K-major tiles of depth 8, twice: while one is multiplied the next is on its way through
// registers, one barrier per step. Not measured.
#include "ops/cuda/gemm_output.cuh"
#include "ops/cuda/ptx.cuh"

namespace t3d::cuda {
namespace {

constexpr int kDepth = 8;

/// Brings one operand's tile [kDepth, extent] to shared memory, four neighbours at a time.
template <int extent, int threads, bool depth_contiguous, bool vector>
class Loader {
 public:
  static constexpr int kStride = extent + 4;  // floats of a row
  static constexpr int kRowPacks = (depth_contiguous ? kDepth : extent) / 4;
  static constexpr int kCount = extent * kDepth / 4 / threads;
  static constexpr int kRowStep = threads / kRowPacks;
  static_assert(kCount >= 1 && threads % kRowPacks == 0);

  __device__ Loader(const void* data, index_t ld, int extent0, int extent_end, int depth0,
                    int depth_end)
      : ld_(ld),
        row_(static_cast<int>(threadIdx.x) / kRowPacks),
        col_(static_cast<int>(threadIdx.x) % kRowPacks * 4) {
    const int row0 = (depth_contiguous ? extent0 : depth0) + row_;
    const int col0 = (depth_contiguous ? depth0 : extent0) + col_;
    rows_left_ = (depth_contiguous ? extent_end : depth_end) - row0;
    cols_left_ = (depth_contiguous ? depth_end : extent_end) - col0;
    source_ = static_cast<const float*>(data) + row0 * ld + col0;
  }

  __device__ __forceinline__ void fetch() {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const float* source = source_ + i * kRowStep * ld_;
      const int left = i * kRowStep < rows_left_ ? cols_left_ : 0;
      if (vector && left >= 4) {
        held_[i] = *reinterpret_cast<const Pack<float, 4>*>(source);
        continue;
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) held_[i].value[j] = j < left ? source[j] : 0.0F;
    }
    source_ += depth_contiguous ? kDepth : kDepth * ld_;
    (depth_contiguous ? cols_left_ : rows_left_) -= kDepth;
  }

  __device__ __forceinline__ void deposit(float* tile) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int row = row_ + i * kRowStep;
      if constexpr (depth_contiguous) {
#pragma unroll
        for (int j = 0; j < 4; ++j) tile[(col_ + j) * kStride + row] = held_[i].value[j];
      } else {
        *reinterpret_cast<Pack<float, 4>*>(tile + row * kStride + col_) = held_[i];
      }
    }
  }

 private:
  const float* source_;
  index_t ld_;
  int row_, col_, rows_left_, cols_left_;
  Pack<float, 4> held_[static_cast<std::size_t>(kCount)];
};

/// Eight numbers of a row of a tile: four at `at`, four half an extent further.
template <int extent>
__device__ __forceinline__ void read_eight(float (&x)[8], const float* row, int at) {
  const auto low = *reinterpret_cast<const Pack<float, 4>*>(row + at);
  const auto high = *reinterpret_cast<const Pack<float, 4>*>(row + at + extent / 2);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    x[j] = low.value[j];
    x[4 + j] = high.value[j];
  }
}

template <int extent>
__device__ __forceinline__ void multiply(float (&sums)[8][8], const float* a, const float* b,
                                         int row, int col) {
  constexpr int kStride = extent + 4;
#pragma unroll
  for (int k = 0; k < kDepth; ++k) {
    float x[8], y[8];
    read_eight<extent>(x, a + k * kStride, row);
    read_eight<extent>(y, b + k * kStride, col);
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int j = 0; j < 8; ++j) sums[i][j] += x[i] * y[j];
  }
}

template <int extent>
__device__ __forceinline__ void store(const GemmProblem& problem, const float (&sums)[8][8],
                                      int row, int col) {
  GemmOutput out = problem.out;
  out.c = static_cast<float*>(out.c) + static_cast<index_t>(blockIdx.z) * problem.split_stride;
  const float scale = scale_of(out);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int r = row + i % 4 + i / 4 * (extent / 2);
    if (r >= problem.m) continue;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float four[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) four[j] = sums[i][4 * half + j];
      finish<float>(out, scale, r, col + half * (extent / 2), problem.n, four);
    }
  }
}

template <int tile_index, bool transpose_a, bool transpose_b, bool vector>
__global__ void __launch_bounds__(kSimtTiles[tile_index].threads())
    gemm_simt(const GemmProblem problem) {
  constexpr int kExtent = kSimtTiles[tile_index].m;
  constexpr int kThreads = kSimtTiles[tile_index].threads();
  constexpr int kBuffer = kDepth * (kExtent + 4);
  using LoadA = Loader<kExtent, kThreads, !transpose_a, vector>;
  using LoadB = Loader<kExtent, kThreads, transpose_b, vector>;
  float* shared = ptx::shared_memory<float>();
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / (kExtent / 8) * 4, col = thread % (kExtent / 8) * 4;
  const TileAt tile = tile_of_block(problem, kExtent, kExtent);
  const int depth0 = static_cast<int>(blockIdx.z) * problem.depth_per_split;
  const int depth1 = min(problem.k, depth0 + problem.depth_per_split);
  LoadA load_a(problem.a, problem.lda, tile.row, problem.m, depth0, depth1);
  LoadB load_b(problem.b, problem.ldb, tile.col, problem.n, depth0, depth1);
  float* next_a = shared;
  float* next_b = shared + 2 * kBuffer;
  const auto turn = [&] {
    load_a.deposit(next_a);
    load_b.deposit(next_b);
    __syncthreads();
  };

  float sums[8][8] = {};
  int depth = depth0;
  if (depth < depth1) {
    load_a.fetch();
    load_b.fetch();
    turn();
  }
  for (int buffer = 0; depth < depth1; depth += kDepth) {
    const bool more = depth + kDepth < depth1;
    const float* a = shared + buffer * kBuffer;
    buffer = 1 - buffer;
    next_a = shared + buffer * kBuffer;
    next_b = next_a + 2 * kBuffer;
    if (more) {
      load_a.fetch();
      load_b.fetch();
    }
    multiply<kExtent>(sums, a, a + 2 * kBuffer, row, col);
    if (more) turn();
  }
  store<kExtent>(problem, sums, tile.row + row, tile.col + col);
}

template <int tile_index, bool transpose_a, bool transpose_b>
void launch_form(Queue& queue, const GemmPlan& plan, const GemmProblem& problem, bool vector) {
  constexpr TileShape tile = kSimtTiles[tile_index];
  const LaunchShape shape{blocks_for(problem.m, tile.m) * blocks_for(problem.n, tile.n), 1,
                          plan.splits, tile.threads(), 4 * kDepth * (tile.m + 4) * 4};
  if (vector)
    launch(queue, shape, gemm_simt<tile_index, transpose_a, transpose_b, true>, problem);
  else
    launch(queue, shape, gemm_simt<tile_index, transpose_a, transpose_b, false>, problem);
}

template <int tile_index>
void launch_tile(Queue& queue, const GemmArgs& args, const GemmPlan& plan,
                 const GemmProblem& problem) {
  const bool vector = can_load_16_bytes(args.a) && can_load_16_bytes(args.b);
  if (args.transpose_a && args.transpose_b)
    launch_form<tile_index, true, true>(queue, plan, problem, vector);
  else if (args.transpose_a)
    launch_form<tile_index, true, false>(queue, plan, problem, vector);
  else if (args.transpose_b)
    launch_form<tile_index, false, true>(queue, plan, problem, vector);
  else
    launch_form<tile_index, false, false>(queue, plan, problem, vector);
}

}  // namespace

void launch_simt(Queue& queue, const GemmArgs& args, const GemmPlan& plan,
                 const GemmProblem& problem) {
  if (plan.tile == kSimtLarge)
    launch_tile<kSimtLarge>(queue, args, plan, problem);
  else
    launch_tile<kSimtSmall>(queue, args, plan, problem);
}

}  // namespace t3d::cuda
