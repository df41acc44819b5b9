#include "run/resident.hpp"

#include <algorithm>

#include "hetero/cost/update_traffic.hpp"
#include "io/checkpoint/checkpoint_plan.hpp"
#include "io/checkpoint/manifest.hpp"
#include "io/writer/background_save.hpp"
#include "tensor3d/frozen.hpp"
#include "tensor3d/model_shape.hpp"

namespace t3d {
namespace {

constexpr index_t kMiB = index_t{1} << 20;

// Buffers of one sender keep the size of its largest round, and senders have it in different
// rounds. Measured together: 2.1 to 2.4 rounds for 2 to 8 ranks, and less where there are few
// rounds.
constexpr double kRoundsReceived = 2.25, kPartReceived = 0.6;

/// What a checkpoint is about, and who shares it.
struct SavedState {
  index_t ranks = 1;
  index_t all = 0, largest = 0;  // bytes: of everything, of one tensor
  index_t parameters = 0;
};

SavedState saved_state(const Plan& plan) {
  const auto& [p, q, r] = plan.replicas.front().cuboid;
  const ModelConfig& m = plan.model;
  const index_t size = size_of(accumulator_of(plan.activation()));
  const index_t states = plan.optimizer == OptimizerKind::sgd ? 1 : 2;
  const ParameterCounts counts = parameter_counts(m);
  index_t numbers = counts.all + states * counts.with_state;
  if (plan.optimizer == OptimizerKind::muon)  // one state of the matrices that it orthogonalises
    for (const auto& [rows, cols] : hidden_matrices(m)) numbers -= rows * cols;
  return {p * q * r, numbers * size, m.hidden * std::max(m.vocab, 2 * m.ffn) * size, counts.all};
}

index_t writer_bytes(const SavedState& state, double others) {
  const auto all = static_cast<double>(state.all), round = static_cast<double>(kRoundBytes);
  return std::min(state.largest, kRoundBytes) +
         static_cast<index_t>(others * std::min(kPartReceived * all, kRoundsReceived * round));
}

}  // namespace

index_t checkpoint_bytes(const Plan& plan) {
  const SavedState state = saved_state(plan);
  if (state.ranks == 1) return 0;
  return writer_bytes(state,
                      static_cast<double>(state.ranks - 1) / static_cast<double>(state.ranks));
}

index_t snapshot_bytes(const Plan& plan, AsyncRule rule, index_t parameters) {
  const SavedState state = saved_state(plan);
  const bool asynchronous =
      rule == AsyncRule::on || (rule == AsyncRule::automatic && state.all >= kWorthProcess);
  const double bytes_each = static_cast<double>(state.all) / static_cast<double>(state.parameters);
  return asynchronous ? static_cast<index_t>(static_cast<double>(parameters) * bytes_each) : 0;
}

ProgramBytes program_bytes(index_t ranks) {
  constexpr index_t kOnHost = 64;  // more are seldom on one
  if (ranks == 1) return {24 * kMiB, 9 * kMiB, 0};
  return {31 * kMiB, 11 * kMiB, kMiB / 2 + std::min(ranks, kOnHost) * kMiB / 10};
}

index_t host_bytes(const Plan& plan, AsyncRule rule) {
  constexpr index_t kWriter = 7 * kMiB, kKernel = 3 * kMiB / 2, kKernelPerRank = 3 * kMiB / 4;
  // Of the file: buffers of the writer, and what the kernel keeps for each of its pages.
  constexpr index_t kPartOfFile = 40, kMostBuffered = 8 * kMiB;
  const index_t ranks = plan.mesh().ranks();
  const ProgramBytes program = program_bytes(ranks);
  const SavedState state = saved_state(plan);
  const index_t snapshot = snapshot_bytes(plan, rule, state.parameters);
  const index_t of_file = state.all / kPartOfFile;
  // Parts of several ranks are put together strip by strip.
  const index_t merged = state.ranks > 1 ? std::min(state.largest, kRoundBytes) : 0;
  const index_t checkpoint =
      snapshot > 0
          ? snapshot + kWriter + std::min(of_file, kMostBuffered) + merged
          : checkpoint_bytes(plan) + (state.ranks - 1) * checkpoint_bound(plan, false, ranks);
  return ranks * (program.own + program.segments + kKernelPerRank) + checkpoint + kKernel + of_file;
}

// A tensor of the weights is one box or two on a rank (qkv and gated up have segments), and so are
// those of the optimizer beside it.
index_t index_bytes(const Plan& plan, index_t ranks) {
  constexpr index_t kOfBlock = 16, kOthers = 8;
  const index_t tensors = plan.model.layers * kOfBlock + kOthers;
  const index_t copies = plan.optimizer == OptimizerKind::sgd ? 2 : 3;
  return ranks * tensors * copies * kIndexBytesPerBox;
}

index_t checkpoint_bound(const Plan& plan, bool writes, index_t ranks_of_file) {
  const SavedState state = saved_state(plan);
  if (state.ranks == 1) return 0;
  return index_bytes(plan, std::min(ranks_of_file, state.ranks)) +
         (writes ? writer_bytes(state, 1) : std::min(kRoundBytes, state.all / state.ranks));
}

}  // namespace t3d
