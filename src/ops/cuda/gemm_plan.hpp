// How a matmul is cut into blocks: the tile that a block computes and, where the tiles of C are too
// few to fill the device (weight gradients: small C, long K), the number of slices of K, whose
// partial sums are added afterwards in a fixed order. A rough estimate of time decides; the tuner
// (engines.cpp) measures the tiles as engines of their own and has the last word.
#pragma once
#include <array>
#include <optional>
#include <string_view>

#include "ops/ops.hpp"

namespace t3d::cuda {

/// What a kernel is compiled for. One step multiplies `depth_bytes` bytes of every row of A and
/// every column of B; `stages` steps are in shared memory at a time.
struct TileShape {
  std::string_view name;
  int m, n;            // of C per block
  int warp_m, warp_n;  // of C per warp
  int depth_bytes, stages;
  int blocks;  // on one multiprocessor at a time, at least
  int rate;    // estimated percent of the machine's rate that the inner loop reaches

  [[nodiscard]] constexpr int threads() const { return m / warp_m * (n / warp_n) * 32; }
  [[nodiscard]] constexpr int stage_bytes() const { return (m + n) * depth_bytes; }
  [[nodiscard]] constexpr int shared_bytes() const { return stages * stage_bytes(); }
};

// The estimates (rate) are not measured.
inline constexpr TileShape kMmaTiles[] = {
    {"wide", 128, 256, 64, 64, 128, 3, 1, 100},
    {"square", 128, 128, 64, 64, 64, 4, 2, 90},
    {"small", 64, 64, 32, 32, 64, 4, 4, 55},
    // Operands that 16-byte copies cannot read: more warps hide slower loads.
    {"unaligned", 128, 128, 64, 32, 64, 3, 1, 30},
};
inline constexpr int kMmaWide = 0, kMmaSquare = 1, kMmaSmall = 2, kMmaUnaligned = 3;

// Every thread of the fp32 kernel computes 8x8: a warp 64x32.
inline constexpr TileShape kSimtTiles[] = {
    {"large", 128, 128, 64, 32, 32, 2, 1, 6},
    {"small", 64, 64, 64, 32, 32, 2, 4, 4},
};
inline constexpr int kSimtLarge = 0, kSimtSmall = 1;

struct GemmPlan {
  int tile = 0;
  int splits = 1;
  index_t depth_per_split = 0;  // of K; a multiple of the tile's depth
};

/// The part of the device that a plan depends on.
struct Machine {
  int multiprocessors = 1;
  index_t shared_bytes = 48 << 10;  // that a block may have
};
[[nodiscard]] Machine machine_now();  // of the current device

[[nodiscard]] bool can_load_16_bytes(const ConstTensorView& view);
/// Depth of K, whatever the flags.
[[nodiscard]] index_t depth_of(const GemmArgs& args);
/// Throws where the extents or number formats do not belong together.
void check_gemm(const GemmArgs& args);

/// The widest tile leaves no registers for 32-bit operands.
[[nodiscard]] bool has_mma_tile(DType operands, int tile);

/// Tile and slices with the least estimated time; `tile` fixes the tile.
[[nodiscard]] GemmPlan plan_mma(const GemmArgs& args, const Machine& machine,
                                std::optional<int> tile = {});
[[nodiscard]] GemmPlan plan_simt(const GemmArgs& args, const Machine& machine);

}  // namespace t3d::cuda
