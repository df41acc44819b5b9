// What a run has learned, on its way from one formation to another: the shards of weights and
// optimizer state leave the old formation, and travel bucket by bucket to the ranks that hold them
// in the new one. Who sends what to whom follows from the two plans; no file is touched.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "train/formation.hpp"

namespace t3d {

/// The axis under which the ledger counts the messages.
inline constexpr const char* kReshapeAxis = "reshape";

/// One kind of state on this rank: shards by bucket, empty where a bucket has none, and everywhere
/// on an idle rank.
struct StateKind {
  std::string name;                   // "" = weights, else as StateSlot
  index_t leaf = StateSlot::kShared;  // whose it is, where replicas differ
  std::vector<Tensor> shards;
};

struct TrainedState {
  std::vector<StateKind> kinds;
  std::vector<double> noise;  // of aggregation, the same on all ranks; empty = none
};

/// Takes the state out of a formation, which is of no use afterwards.
[[nodiscard]] TrainedState take_state(Formation& formation);

/// Gives `state`, held as plan `before` says, to `formation`. Collective over machine.world().
/// State that the new plan needs and the old one did not have starts at 0: its names are returned,
/// the same on all ranks. `predicted` gets the bytes that this rank sends. Memory: the larger
/// formation's, one bucket, and messages of at most 64 MiB.
/// What all replicas held comes from replica `source`; kOwnReplica: from each rank's own.
inline constexpr index_t kOwnReplica = -1;
[[nodiscard]] std::vector<std::string> move_state(Machine& machine, const Plan& before,
                                                  TrainedState state, Formation& formation,
                                                  Ledger& predicted, index_t source = kOwnReplica);

/// The name of the state from which that of a leaf comes, where there were `leaves` before: new
/// leaves begin with a copy of an old one's.
[[nodiscard]] std::string leaf_source(const std::string& name, index_t leaves);

/// Whether the optimizers keep the same kinds of state under both plans.
[[nodiscard]] bool keeps_same_state(const Plan& before, const Plan& after);
/// Whether the plan's noise estimate goes on from that of the one before: both have one, of the
/// same kind (gradients or changes of the weights), for the same groups of parameters.
[[nodiscard]] bool keeps_noise(const Plan& before, const Plan& after);
/// The estimate is per reference batch: from the unit of one plan to that of the other.
void rescale_noise(std::span<double> noise, const Plan& before, const Plan& after);

}  // namespace t3d
