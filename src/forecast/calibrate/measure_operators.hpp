// The operators of one rank over many shapes: the samples of its class. Every rank of the class
// measures the same shapes at the same time, as the neighbours of a node compute in training, too.
#pragma once
#include <functional>
#include <vector>

#include "forecast/cluster/cluster.hpp"
#include "hetero/speed/probe.hpp"

namespace t3d {

struct OperatorBudget {
  double seconds = 60;    // wall time of all kinds together, about
  index_t bytes = 0;      // of buffers at most; 0 = any
  bool cpu_time = false;  // as ProbeBudget's
  /// Emulation: of this rank, which rests after each call, and takes so many times as long.
  double slowdown = 1;
};

struct OperatorHooks {
  /// Before each shape, equally often on all ranks of a class: a barrier.
  std::function<void()> together = [] {};
  /// The least of all ranks' numbers, so that they choose the same shapes.
  std::function<double(double)> least = [](double own) { return own; };
};

/// One table for each kind, without fits. A kind that fails (no memory, no operator of this format)
/// has no samples, and `faults` says why.
[[nodiscard]] std::vector<OperatorTable> measure_operators(const ProbeMachine& machine,
                                                           ComputeType compute,
                                                           const OperatorBudget& budget,
                                                           const OperatorHooks& hooks,
                                                           std::vector<std::string>& faults);

/// Median seconds of the host to queue one small operator, and their standard error.
/// `slowdown`: of an emulated slower rank, times which they are.
[[nodiscard]] std::pair<double, double> measure_launch(const ProbeMachine& machine,
                                                       double slowdown = 1);

/// The samples of several ranks at the same shapes as one: the median, with what the ranks and
/// their samples differ. Shapes that not all have are left out.
[[nodiscard]] std::vector<Sample> median_samples(const std::vector<std::vector<Sample>>& ranks);

}  // namespace t3d
