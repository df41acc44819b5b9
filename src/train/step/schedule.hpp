// How far a run has come, how long it is, and the learning rate that follows from both: warm-up
// from 0 to 1, then constant, linear, cosine, or warm-up-stable-decay (linear over the last part).
#pragma once
#include "core/options.hpp"

namespace t3d {

/// What a run has done so far.
struct Progress {
  index_t steps = 0;
  index_t samples = 0;  // read from the corpus: position of the next one
  index_t updates = 0;  // of the weights: steps that were not skipped
  /// Samples at the end of the warm-up; -1 while it lasts.
  index_t warm_samples = -1;
};

/// The end of a run: after so many steps or so many tokens (0 = not given), whichever comes first.
struct RunLength {
  index_t steps = 0;
  double tokens = 0;
};

/// Factor on the peak learning rate at position `at` of a run of `steps`, whose warm-up ends at
/// `warmup`; all in the same unit.
[[nodiscard]] double decay_factor(const ScheduleConfig& schedule, double at, double warmup,
                                  double steps);
/// The same for the update number `step` (0-based) of `steps`, warm-up included.
[[nodiscard]] double schedule_factor(const ScheduleConfig& schedule, index_t step, index_t steps);

/// A run whose batch may change on the way. Where it ends by tokens, the schedule follows the
/// tokens: as long as the batch stays, the factors are those of the equal number of steps, to the
/// bit.
class Course {
 public:
  Course(const ScheduleConfig& schedule, const RunLength& length, index_t context,
         index_t sequences)
      : schedule_(schedule), length_(length), context_(context), sequences_(sequences) {}

  [[nodiscard]] bool ended(const Progress& progress) const;
  /// Steps of the whole run, if the batch stays as it is now.
  [[nodiscard]] index_t steps(const Progress& progress) const;
  /// Factor on the peak learning rate for the next step.
  [[nodiscard]] double factor(const Progress& progress) const;
  /// After a step of all its samples.
  void advance(Progress& progress, bool updated) const;
  void set_sequences(index_t sequences) { sequences_ = sequences; }

 private:
  [[nodiscard]] double tokens_per_step() const {
    return static_cast<double>(sequences_) * static_cast<double>(context_);
  }
  [[nodiscard]] index_t steps_by_tokens(const Progress& progress) const;
  [[nodiscard]] bool ends_by_tokens(const Progress& progress) const;

  ScheduleConfig schedule_;
  RunLength length_;
  index_t context_, sequences_;
};

}  // namespace t3d
