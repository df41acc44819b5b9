// The gradient noise scale over a whole run: what some steps have measured, as a power law of the
// step, and what it says of other batches.
//
// With noise scale N sequences, a step of B sequences brings as much as 1 / (1 + N / B) steps of an
// unlimited batch (McCandlish et al. 2018, "An Empirical Model of Large-Batch Training",
// section 2.2: the optimal step's improvement is dL_max / (1 + N / B)). So a stretch of the
// training that an unlimited batch would do in u steps takes u (1 + N / B) steps, whose sequences
// are u (B + N).
#pragma once
#include <vector>

#include "core/types.hpp"

namespace t3d {

/// Of one step, as log.jsonl has it: estimates without bias, which may be below 0.
struct NoiseStep {
  double step = 0, sequences = 0;
  double signal = 0, noise = 0;  // noise: of one sequence
};

/// scale * step^exponent sequences.
struct NoiseLaw {
  double scale = 0, exponent = 0;
  double sequences = 0;  // of a step of the run whose steps these are
  // Of what it was fitted on; 0 where it is given.
  double first = 0, last = 0;  // steps
  index_t steps = 0;
  double spread = 1;  // windows lie around it by this factor (one standard deviation)
  [[nodiscard]] double at(double step) const;
};

/// Sums over windows of steps, a line through the logarithms of their ratios. Nothing where the
/// steps together show no signal, or no noise.
[[nodiscard]] bool fit_noise(std::vector<NoiseStep> steps, NoiseLaw& law);

/// A part of the training.
struct Stretch {
  double steps = 0;     // of the batch that was planned
  double progress = 0;  // steps of an unlimited batch
  double noise = 0;     // noise scale, sequences
  /// Steps of another batch that bring as much.
  [[nodiscard]] double steps_of(double batch) const { return progress * (1 + noise / batch); }
};

/// A run of `steps` steps of `batch` sequences, in `count` parts of equal numbers of steps. Where
/// the law is of a run with another batch, stretches correspond by progress.
[[nodiscard]] std::vector<Stretch> stretches_of(const NoiseLaw& law, double steps, double batch,
                                                int count);

}  // namespace t3d
