// What of a step's messages of weights and gradients ranks wait for, although they compute while
// these travel. One rule for plans from a cluster's file (hetero/forecast) and for plans of ranks
// that are there (hetero/planner).
//
// Weights are gathered before and gradients summed behind the products of the whole step. Replicas
// sum a gradient once it is complete: behind the backward pass of the last micro-batch. Nothing
// travels behind the first gather and the last sum: a fifth is always waited for. Nothing is hidden
// where a rank of a CPU takes part: messages get on only while its computing thread looks after
// them (comm/engine.hpp), and copying needs its core.
#pragma once
#include <algorithm>

#include "core/plan.hpp"

namespace t3d {

inline constexpr double kHidden = 0.8;

/// Seconds; weights and gradients inside replicas, gradients between replicas.
struct WeightMessages {
  double inside_replica = 0, over_replicas = 0;
};

/// What a replica's ranks can hide messages behind.
struct MessageCover {
  double most = 0;           // of each message; 0: nothing is hidden
  double last_backward = 0;  // of a step's computing, what messages over replicas have
};

/// Of a replica that cuts a step into so many micro-batches. Adasum's replicas wait for each
/// other's products before they send results back: nothing of that is hidden.
[[nodiscard]] inline MessageCover message_cover(AggregateMethod method, Recompute recompute,
                                                double micros, bool on_gpus) {
  if (!on_gpus) return {};
  const double passes = recompute == Recompute::block ? 4 : 3;  // all but one are backward
  const bool sums = method != AggregateMethod::adasum;
  return {kHidden, sums ? (passes - 1) / passes / std::max(1.0, micros) : 0};
}

/// max(a fifth, messages - computing that can hide them). What is hidden is never longer than the
/// computing, so a step is never shorter than its messages. With the computing, the sum of both and
/// of `messages` does not get smaller.
[[nodiscard]] inline WeightMessages exposed_messages(const WeightMessages& messages,
                                                     double computing, const MessageCover& cover) {
  const double inside = std::min(cover.most * messages.inside_replica, computing);
  const double over = std::min(
      {cover.most * messages.over_replicas, cover.last_backward * computing, computing - inside});
  return {messages.inside_replica - inside, messages.over_replicas - over};
}

}  // namespace t3d
