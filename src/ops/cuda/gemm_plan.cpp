#include "ops/cuda/gemm_plan.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "device/cuda/cuda_queue.hpp"

namespace t3d::cuda {
namespace {

constexpr index_t kMaxPartialBytes = 64 << 20;
constexpr index_t kMaxSplits = 128;

index_t divide_up(index_t a, index_t b) { return (a + b - 1) / b; }

struct Candidate {
  GemmPlan plan;
  double seconds = std::numeric_limits<double>::infinity();
};

// Round figures of a large GPU; only ratios matter. 1e12 multiply-adds per second and
// multiprocessor of 16-bit numbers, memory 3e12 bytes per second for the whole device.
double estimate(const GemmArgs& args, const TileShape& tile, index_t tiles, index_t splits,
                index_t depth_per_split, const Machine& machine) {
  constexpr double kRate = 1e12, kBandwidth = 3e12, kBlockSeconds = 2e-6, kLaunchSeconds = 3e-6;
  const index_t blocks = tiles * splits;
  const index_t rounds = divide_up(blocks, machine.multiprocessors);
  const index_t waves = divide_up(rounds, tile.blocks);
  const double work = static_cast<double>(tile.m) * tile.n * static_cast<double>(depth_per_split);
  const double size = static_cast<double>(size_of(args.a.dtype)) / 2;
  double seconds = static_cast<double>(rounds) * work * size / (kRate * tile.rate / 100.0) +
                   static_cast<double>(waves) * kBlockSeconds;
  if (splits > 1)
    seconds += kLaunchSeconds + 8.0 * static_cast<double>(splits * args.c.count()) / kBandwidth;
  return seconds;
}

void try_tile(const GemmArgs& args, std::span<const TileShape> tiles, int index,
              const Machine& machine, Candidate& best) {
  const TileShape& tile = tiles[static_cast<std::size_t>(index)];
  if (tile.shared_bytes() > machine.shared_bytes) return;
  const index_t depth = depth_of(args);
  const index_t step = tile.depth_bytes / size_of(args.a.dtype);
  const index_t steps = divide_up(depth, step);
  const index_t blocks = divide_up(args.c.rows, tile.m) * divide_up(args.c.cols, tile.n);
  const index_t room = kMaxPartialBytes / std::max<index_t>(4 * args.c.count(), 1);
  const index_t useful = 4 * tile.blocks * machine.multiprocessors / std::max<index_t>(blocks, 1);
  const index_t limit = std::clamp<index_t>(std::min({room, useful, steps / 4}), 1, kMaxSplits);
  for (index_t splits = 1; splits <= limit; ++splits) {
    const index_t own = divide_up(steps, splits) * step;
    const index_t used = std::max<index_t>(divide_up(depth, std::max<index_t>(own, 1)), 1);
    if (used != splits) continue;  // the last slice would be empty
    const double seconds = estimate(args, tile, blocks, splits, own, machine);
    if (seconds < best.seconds) best = {{index, static_cast<int>(splits), own}, seconds};
  }
}

}  // namespace

Machine machine_now() {
  int ordinal = 0, multiprocessors = 0, shared = 0;
  check(cudaGetDevice(&ordinal), "asking for the current GPU");
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, ordinal),
        "asking about the GPU");
  check(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal),
        "asking about the GPU");
  return {std::max(multiprocessors, 1), shared};
}

bool can_load_16_bytes(const ConstTensorView& view) {
  const index_t per_pack = 16 / size_of(view.dtype);
  return reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0 && view.ld % per_pack == 0;
}

index_t depth_of(const GemmArgs& args) { return args.transpose_a ? args.a.rows : args.a.cols; }

void check_gemm(const GemmArgs& args) {
  const index_t m = args.transpose_a ? args.a.cols : args.a.rows, k = depth_of(args);
  const index_t n = args.transpose_b ? args.b.rows : args.b.cols;
  const index_t b_depth = args.transpose_b ? args.b.cols : args.b.rows;
  T3D_CHECK(m == args.c.rows && n == args.c.cols && k == b_depth,
            "gemm [{},{}] x [{},{}] -> [{},{}]", m, k, b_depth, n, args.c.rows, args.c.cols);
  T3D_CHECK(
      args.a.dtype == args.b.dtype && (args.c.dtype == args.a.dtype || args.c.dtype == DType::f32),
      "gemm {} x {} -> {}", name_of(args.a.dtype), name_of(args.b.dtype), name_of(args.c.dtype));
  T3D_CHECK(args.bias.data == nullptr || (args.bias.cols == n && args.bias.dtype == DType::f32),
            "gemm bias of {} {}, want {} fp32", args.bias.cols, name_of(args.bias.dtype), n);
  constexpr index_t kLimit = std::numeric_limits<int>::max() / 2;
  T3D_CHECK(std::max({m, n, k}) < kLimit, "a matmul of {} x {} x {} is too long", m, n, k);
}

bool has_mma_tile(DType operands, int tile) { return tile != kMmaWide || is_half(operands); }

GemmPlan plan_mma(const GemmArgs& args, const Machine& machine, std::optional<int> tile) {
  Candidate best;
  if (!can_load_16_bytes(args.a) || !can_load_16_bytes(args.b)) tile = kMmaUnaligned;
  for (int index = 0; index < kMmaUnaligned; ++index)
    if (!tile && has_mma_tile(args.a.dtype, index)) try_tile(args, kMmaTiles, index, machine, best);
  if (tile) try_tile(args, kMmaTiles, *tile, machine, best);
  return best.plan;
}

GemmPlan plan_simt(const GemmArgs& args, const Machine& machine) {
  Candidate best;
  for (const int index : {kSimtLarge, kSimtSmall}) try_tile(args, kSimtTiles, index, machine, best);
  return best.plan;
}

}  // namespace t3d::cuda
