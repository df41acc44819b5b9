// The operators of one plan on one rank, timed at the shapes that its steps have, with their flops
// and bytes: what a roofline is drawn of (Williams, Waterman, Patterson: Roofline, CACM 52(4),
// 2009). Every rank times the same operators at the same time, since ranks of a node share memory
// and power in training, too.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "forecast/calibrate/operator_shapes.hpp"
#include "forecast/operator_calls.hpp"
#include "hetero/speed/probe.hpp"

namespace t3d {

/// Of one call. Bytes are the least that any machine moves: each operand read once, each result
/// written once, and read before where it is added to.
struct OperatorCounts {
  double flops = 0, bytes = 0;
};
/// Products: 2mnk. Attention: causal, half of the square counts. Streams: additions,
/// multiplications, divisions, roots, exponentials and comparisons of an element count as one each:
/// residual 1, norm 24 (layer norm, forward and backward), activation 28 (GELU, both), loss 8,
/// embedding 1, optimizer 15 (AdamW).
[[nodiscard]] OperatorCounts counts_of(OperatorKind kind, ComputeType compute,
                                       const OperatorShape& shape);

struct MeasuredOperator {
  OperatorCall call;
  OperatorCounts counts;
  double seconds = 0, error = 0;  // of one call: median; its relative standard error
};

struct PlanOperators {
  std::vector<MeasuredOperator> operators;  // by kind, then shape
  double matmul_rate = 0;  // flops per second: the best of square products and of `operators`
  double stream_rate = 0;  // bytes per second: a sum of operands that no cache holds
  std::vector<std::string> notes;  // what was left out, and why
};

struct PlanOperatorBudget {
  double seconds = 0.15;            // for each shape, about
  std::size_t shapes = 48;          // at most: those with most work
  double bytes = 256 << 20;         // of the operands of one shape at most
  double stream_bytes = 192 << 20;  // of the sum that memory's rate is taken from
  bool cpu_time = false;            // as ProbeBudget's
  double dilation = 1;              // as ProbeHooks'
};

/// `calls`: step_calls() of one rank, the same on all. `together`: a barrier, called equally often
/// everywhere, whatever fails.
[[nodiscard]] PlanOperators measure_plan_operators(const ProbeMachine& machine, ComputeType compute,
                                                   std::vector<OperatorCall> calls,
                                                   const PlanOperatorBudget& budget,
                                                   const std::function<void()>& together);

}  // namespace t3d
