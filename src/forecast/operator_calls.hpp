// The operators that one rank starts in a training step, by kind and shape, and how often: what a
// cluster's measured tables (hetero/cluster) turn into seconds. The same pure function of (plan,
// coordinate) as the other costs, one level finer than step_work(): products are listed one by one,
// since skinny ones run at other rates than square ones.
#pragma once
#include <array>
#include <vector>

#include "core/plan.hpp"
#include "forecast/cluster/cluster.hpp"
#include "hetero/cost/cost_memo.hpp"

namespace t3d {

struct OperatorCall {
  OperatorKind kind = OperatorKind::matmul;
  std::array<double, Sample::kMostColumns> shape{};  // the kind's columns (operator_terms.hpp)
  double times = 0;                                  // of a part of an operator less than one
};

/// In a whole step; equal shapes are joined. The gradients of frozen weights are not in it.
[[nodiscard]] std::vector<OperatorCall> step_calls(const Plan& plan, const Coord& coord,
                                                   const CostMemoPtr& memo = nullptr);

}  // namespace t3d
