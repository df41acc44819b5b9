// Putting a job that was stopped, or has lost a rank, back into Slurm's queue: whether, why not,
// and how.
#pragma once
#include <functional>
#include <string>

namespace t3d {

struct PutBack {
  bool goes_on = true;  // somebody should start the job again
  std::function<void()>
      act;  // does so. The last act of a program: Slurm ends it soon. Empty: nobody
};

/// Asks Slurm, and says on the screen why the job cannot be put back, if so. `dir`: the run folder,
/// for its lives. A run of which this life and the two before it have brought nothing new is not
/// started again; one life that was asked to stop before its first step does not count. Outside
/// Slurm there is nothing to act.
enum class LifeYield {
  checkpoint,  // a new one
  nothing,
  cut_short,  // asked to stop before its first step
};
[[nodiscard]] PutBack plan_put_back(const std::string& dir, LifeYield yield);

}  // namespace t3d
