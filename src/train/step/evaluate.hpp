// Evaluation: the mean loss of a model over samples, and how a rank reads its part of them.
#pragma once
#include <cstdint>
#include <vector>

#include "data/batch_source.hpp"
#include "train/formation.hpp"
#include "train/step/interruption.hpp"

namespace t3d {

/// Reads the sequences of this rank's slab out of [position, position + sequences).
class SlabReader {
 public:
  /// `source` may be null: ids are then 0 (dry runs). The spans live until the next call.
  [[nodiscard]] MicroBatch read(const Formation& formation, BatchSource* source, index_t position,
                                index_t sequences);

 private:
  std::vector<std::int32_t> ids_, targets_;
};

/// Mean loss of the formation's model over the first `sequences` samples of `source`, dealt evenly
/// to the replicas in passes of up to evaluation_micro(). The same on every rank, idle ones too;
/// collective over machine.world(). With `interruption` the ranks agree between passes whether to
/// go on: where they do not, the loss is not a number.
struct EvaluatedLoss {
  double loss = 0;
  index_t rounds = 0;  // passes that were done, of the replica with most of them
};
[[nodiscard]] EvaluatedLoss evaluate_model(Machine& machine, const Formation& formation,
                                           BatchSource& source, index_t sequences,
                                           Interruption* interruption = nullptr);

/// Sequences per pass of an evaluation: the largest micro-batch of the plan.
[[nodiscard]] index_t evaluation_micro(const Plan& plan);

}  // namespace t3d
