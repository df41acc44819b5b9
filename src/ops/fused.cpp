// Verbs that are compositions of others, for back ends that have nothing better.
#include "ops/ops.hpp"

namespace t3d {

void Ops::norm_forward(Queue& queue, const NormArgs& args) {
  const bool added = args.sum.data != nullptr;
  if (added) add(queue, args.x, args.sum);
  const ConstTensorView x = added ? ConstTensorView(args.sum) : args.x;
  norm_stats(queue, args.kind, x, args.stats);
  norm_merge(queue, args.kind, args.stats, 1, args.eps, args.moments);
  norm_apply(queue, x, args.moments, args.gamma, args.beta, args.y);
}

}  // namespace t3d
