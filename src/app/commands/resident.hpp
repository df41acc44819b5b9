// What a CPU rank's process holds beside tensors and messages (MemoryCost): measured constants, and
// the buffers of the rank that writes a checkpoint. Against real runs: bench/memory_shapes.sh and
// docs/numbers.md.
#pragma once
#include "core/plan.hpp"

namespace t3d {

/// Program, libraries (MPI, oneDNN, HDF5), their heap and code made at run time: VmHWM of one rank
/// less its tensors, measured between 45 MiB (0.4 M weights) and 53 MiB (30 M weights, bf16).
inline constexpr index_t kProgramBytes = index_t{48} << 20;

/// The writer's buffers (io/checkpoint/node_file.hpp): a strip, and a round of what the other ranks
/// of the cuboid hold. Nothing where one rank holds all.
[[nodiscard]] index_t checkpoint_bytes(const Plan& plan);

/// What a rank keeps of a snapshot (io/writer), where its cuboid's ranks hold `parameters` weights
/// at most: its own part of the first replica's state. 0 where checkpoints are written in the
/// foreground, as far as `rule` and the size of the state tell.
[[nodiscard]] index_t snapshot_bytes(const Plan& plan, AsyncRule rule, index_t parameters);

/// Of the rank that writes, whoever of the cuboid's ranks holds how much of the state; else of one
/// that holds an even part of it, which it packs for a round. An upper bound.
[[nodiscard]] index_t checkpoint_bound(const Plan& plan, bool writes);

}  // namespace t3d
