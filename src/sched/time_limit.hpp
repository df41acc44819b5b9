// When a run has to stop because its time is up: early enough for the step under way, one more in
// which the ranks agree, and a checkpoint. Pure arithmetic.
#pragma once
#include <cstddef>
#include <vector>

namespace t3d {

/// Wall times of the last steps and of checkpoints.
class Pace {
 public:
  void add_step(double seconds);
  /// So long an evaluation did not hear of wishes.
  void add_deaf(double seconds);
  /// One is being written beside the steps: whoever stops waits for it first.
  void begin_save() { saving_ = true; }
  void end_save() { saving_ = false; }
  void add_save(double seconds);
  /// 99 of 100 of the last 256 steps take at most this; 0 where nothing is known.
  [[nodiscard]] double long_step_seconds() const;
  /// The longest of the last checkpoints; 0 where nothing is known.
  [[nodiscard]] double save_seconds() const;
  /// From the wish to stop until the checkpoint is published, at most.
  [[nodiscard]] double stop_seconds() const {
    return unheard_seconds() + (saving_ ? 2 : 1) * save_seconds();
  }
  /// The same with something to spare, since checkpoints and steps vary: so long before its end a
  /// life of `life_seconds` in all has to utter the wish. A short life spares less.
  [[nodiscard]] double reserve_seconds(double life_seconds) const;

 private:
  /// A wish comes too late for a step; what follows, another one or an evaluation, has to hear it.
  [[nodiscard]] double unheard_seconds() const;

  std::vector<double> steps_, saves_;
  double deaf_ = 0;  // the longest
  std::size_t next_step_ = 0, next_save_ = 0;
  bool saving_ = false;
};

}  // namespace t3d
