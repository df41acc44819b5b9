// What a CPU rank's process holds beside tensors and messages (MemoryCost): measured constants, and
// the buffers of the rank that writes a checkpoint. Against real runs: bench/memory_shapes.sh and
// docs/numbers.md.
#pragma once
#include "core/plan.hpp"

namespace t3d {

/// One process before it has tensors and messages, on average over a run.
struct ProgramBytes {
  index_t files = 0;  // pages of program and libraries, which the ranks of a host share
  index_t own = 0;    // heap, and code made at run time
  index_t segments =
      0;  // memory that ranks share for their messages, as far as this one touches it
  [[nodiscard]] index_t all() const { return files + own + segments; }
};
/// Measured with Open MPI 4.1 and oneDNN 2.6 (docs/results/memory_peaks.md); `ranks` of the job.
[[nodiscard]] ProgramBytes program_bytes(index_t ranks);

/// The writer's buffers (io/checkpoint/node_file.hpp): a strip, and a round of what the other ranks
/// of the cuboid hold. Nothing where one rank holds all.
[[nodiscard]] index_t checkpoint_bytes(const Plan& plan);

/// What a rank keeps of a snapshot (io/writer), where its cuboid's ranks hold `parameters` weights
/// at most: its own part of the first replica's state. 0 where checkpoints are written in the
/// foreground, as far as `rule` and the size of the state tell.
[[nodiscard]] index_t snapshot_bytes(const Plan& plan, AsyncRule rule, index_t parameters);

/// What all ranks of the plan hold beside tensors and messages where they share one host, with the
/// process that writes the checkpoint and what the kernel keeps for all of them; without the pages
/// of files, which the kernel gives back when memory is short.
[[nodiscard]] index_t host_bytes(const Plan& plan, AsyncRule rule);

/// The index of a node file that `ranks` ranks share, which the rank that writes it has while it
/// writes, and each rank while it loads, one after the other. An upper bound.
[[nodiscard]] index_t index_bytes(const Plan& plan, index_t ranks);

/// Of the rank that writes, whoever of the cuboid's ranks holds how much of the state; else of one
/// that holds an even part of it, which it packs for a round. With the index of a file of
/// `ranks_of_file`. An upper bound.
[[nodiscard]] index_t checkpoint_bound(const Plan& plan, bool writes, index_t ranks_of_file);

}  // namespace t3d
