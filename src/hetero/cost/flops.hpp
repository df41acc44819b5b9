// Work of one rank in a training step, by class of operator, as a pure function of (plan,
// coordinate). Integers only, microseconds: with a rank's measured rates these make its seconds.
#pragma once
#include "core/plan.hpp"
#include "hetero/cost/cost_memo.hpp"

namespace t3d {

/// Floating point operations; an addition and a multiplication are two. `streamed`: bytes that the
/// operators between the products read and write, which no product hides: norms, activations,
/// residuals, loss, sums of gradients, optimizer.
struct StepWork {
  index_t matmul = 0;  // products of linears and head, forward and backward, as often as computed
  index_t attention = 0;  // causal: half of the square; 5 products backward, 2 forward
  index_t whole = 0;      // Newton-Schulz of the matrices that this rank owns (Muon)
  index_t streamed = 0;
  /// Of `matmul`: linears beside attention, linears of the feed-forward part; the rest is the
  /// head's. Their widths differ: ranks that compute as much in all may wait for each other in
  /// each.
  index_t around_attention = 0, feed_forward = 0;
  friend bool operator==(const StepWork&, const StepWork&) = default;
};
[[nodiscard]] StepWork step_work(const Plan& plan, const Coord& coord,
                                 const CostMemoPtr& memo = nullptr);
/// Numbers that an optimizer reads or writes for each weight.
[[nodiscard]] index_t optimizer_numbers(OptimizerKind kind);
/// Of it, what does not depend on the rank's part of the batch: optimizer and Newton-Schulz.
[[nodiscard]] StepWork update_work(const Plan& plan, const Coord& coord);

}  // namespace t3d
