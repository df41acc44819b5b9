#include "app/commands/resident.hpp"

#include <algorithm>

#include "io/checkpoint/checkpoint_plan.hpp"
#include "tensor3d/model_shape.hpp"

namespace t3d {
namespace {

// Buffers of one sender keep the size of its largest round, and senders have it in different
// rounds. Measured together: 2.1 to 2.4 rounds for 2 to 8 ranks, and less where there are few
// rounds.
constexpr double kRoundsReceived = 2.25, kPartReceived = 0.6;

}  // namespace

index_t checkpoint_bytes(const Plan& plan) {
  const auto& [p, q, r] = plan.replicas.front().cuboid;
  const index_t ranks = p * q * r;
  if (ranks == 1) return 0;
  const ModelConfig& m = plan.model;
  const index_t size = size_of(accumulator_of(plan.activation()));
  const index_t copies = plan.optimizer == OptimizerKind::sgd ? 2 : 3;  // weights and state
  const auto all = static_cast<double>(copies * parameter_count(m) * size);
  const double others = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  const auto round = static_cast<double>(kRoundBytes);
  const index_t largest = m.hidden * std::max(m.vocab, 2 * m.ffn) * size;
  return std::min(largest, kRoundBytes) +
         static_cast<index_t>(others * std::min(kPartReceived * all, kRoundsReceived * round));
}

}  // namespace t3d
