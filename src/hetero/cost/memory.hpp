// Memory of one rank as a pure function of (plan, coordinate): what its tensors reach in a training
// step, and what the process holds beside them. Integers only, microseconds for one coordinate: the
// requests of a step are walked through with few layers standing for all. Means, sums and Adasum
// over different cuboids need the boxes of all ranks, as in step_traffic(), and take longer.
#pragma once
#include <array>

#include "core/plan.hpp"
#include "device/device.hpp"
#include "hetero/cost/cost_memo.hpp"

namespace t3d {

struct MemoryCost {
  /// Bytes by kind when most is in use (MemoryAccount::at_peak).
  std::array<index_t, kMemoryKinds> by_kind{};
  index_t live_peak = 0;  // their sum
  /// MemoryAccount::reserved_peak of the second step: in use, or free and kept for the next request
  /// of its size. What the device must have.
  index_t tensors_peak = 0;
  /// Host memory for reductions' messages, kept from one to the next (comm/scratch.hpp); on CPU
  /// ranks.
  index_t messages = 0;
  /// Host memory for tables of other ranks' shards, where replicas cut the model differently. Those
  /// of a change of plan (tensor3d/shard_routes.hpp) are there while activations are not, and
  /// smaller.
  index_t tables = 0;
};
/// What the rank needs at most: tensors, and on CPUs messages and tables.
[[nodiscard]] inline index_t needed_bytes(const MemoryCost& memory, bool on_gpu) {
  return memory.tensors_peak + (on_gpu ? 0 : memory.messages + memory.tables);
}
[[nodiscard]] MemoryCost memory_cost(const Plan& plan, const Coord& coord,
                                     const CostMemoPtr& memo = nullptr);

/// Bytes of weights at rest on this rank, and of the optimizers' state: of one for each leaf where
/// these update by themselves.
struct StateAtRest {
  index_t weights = 0, optimizer = 0;
};
[[nodiscard]] StateAtRest state_at_rest(const Plan& plan, const Coord& coord);

/// Elements of weights at rest on this rank.
[[nodiscard]] index_t parameters_at_rest(const Plan& plan, const Coord& coord);

}  // namespace t3d
