// The probe: how long this rank takes for the operators of a training step, measured with the
// verbs, shapes and number formats of the plan. Per class of operators (StepWork) a curve through
// three sizes, and free memory. Protocol: dearest classes first; warm-up; 15, 31, 63 samples until
// the median's standard error is below half a percent or the time is up; what was reached is
// recorded. Sources: shared with Lastovetsky and Reddy's functional performance models (IJHPCA 21,
// 2007).
#pragma once
#include <functional>

#include "core/plan.hpp"
#include "hetero/speed/speeds.hpp"
#include "ops/ops.hpp"

namespace t3d {

/// One rank's means.
struct ProbeMachine {
  Device& device;
  Ops& ops;
  Queue& queue;
  /// The optimizer's orthogonalisation of one matrix in place (Muon). May be empty for others.
  std::function<void(TensorView x, index_t steps)> orthogonalise;
};

struct ProbeBudget {
  /// Wall time of all classes together. Where it is short, sizes below the plan's are measured, and
  /// fewer samples taken; it is never exceeded by more than one call of an operator.
  double seconds = 4;
  /// Relative standard error of a median that is good enough.
  double error = 0.005;
  /// A sample repeats its operators until it lasts so long; longer ones, up to `longest_sample`,
  /// where there is time, so that throttling and quotas are inside it.
  double shortest_sample = 2e-3, longest_sample = 0.1;
  /// Largest buffer for messages; the same on all ranks (LinkBudget).
  index_t message_bytes = index_t{64} << 20;
  /// Of CPU ranks that share cores: the thread's CPU time instead of wall time (SampleRule).
  bool cpu_time = false;
};

struct ProbeHooks {
  /// Called before each class, equally often on all ranks of a plan: a barrier, so that the ranks
  /// of a node are measured together.
  std::function<void()> together;
  /// All seconds are multiplied by it (an emulated slower rank).
  double dilation = 1;
};

/// Curves, device and error of this rank; node and free memory are the caller's to fill in. Where
/// the plan gives it none of a class's work (idle, or an empty part), it is measured with the
/// shapes of the place that has most of it. Its memory is given back. What fails (no memory) is
/// thrown after the last call of `together`.
[[nodiscard]] RankSpeed probe_rank(const ProbeMachine& machine, const Plan& plan, int world_rank,
                                   const ProbeBudget& budget, const ProbeHooks& hooks = {});

/// Classes with work in this plan, the dearest first; the same on every rank.
[[nodiscard]] std::vector<WorkClass> probed_classes(const Plan& plan);

}  // namespace t3d
