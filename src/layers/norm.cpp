#include "layers/norm.hpp"

#include <vector>

namespace t3d {

Norm::Norm(const Context& context, const std::string& name, NormKind kind, index_t length,
           double eps, ParamBucket& vectors)
    : context_(context),
      kind_(kind),
      length_(length),
      eps_(eps),
      vectors_(vectors),
      gamma_(vectors.entry(name + ".weight")),
      beta_(vectors.table().find(name + ".bias")) {}

DistTensor Norm::forward(const DistTensor& x, Saved* saved) { return run(x, {}, saved); }

DistTensor Norm::forward_sum(const DistTensor& x, DistTensor& sum, Saved* saved) {
  if (context_.extent(Axis::k) == 1) return run(x, sum.local, saved);
  context_.ops.add(context_.queue, x.local, sum.local);
  return run(sum, {}, saved);
}

// With a `sum` only where the hidden dimension is not cut.
DistTensor Norm::run(const DistTensor& x, TensorView sum, Saved* saved) {
  const PhaseClock::Scope scope(context_.clock, "norm");
  const index_t rows = x.local.rows();
  const index_t parts = context_.extent(Axis::k);
  const DType acc = context_.accumulator();
  // Every rank's block of the stacked statistics; the own one is gathered in place.
  Tensor stats = context_.make(acc, parts * rows, 3, MemoryKind::workspace);
  TensorView own = stats.view().row_range(context_.coord(Axis::k) * rows, rows);
  const ConstTensorView gamma = vectors_.weights(gamma_).flat();
  const ConstTensorView beta = beta_ < 0 ? ConstTensorView() : vectors_.weights(beta_).flat();
  Tensor moments = context_.make(acc, rows, 2, MemoryKind::activations);
  DistTensor y{x.layout,
               context_.make(context_.activation, rows, x.local.cols(), MemoryKind::activations)};
  if (parts == 1) {
    context_.ops.norm_forward(context_.queue,
                              {kind_, x.local, sum, gamma, beta, eps_, own, moments, y.local});
  } else {
    context_.ops.norm_stats(context_.queue, kind_, x.local, own);
    const std::vector<index_t> counts(static_cast<std::size_t>(parts), rows * 3);
    context_.mesh.along(Axis::k).all_gather(own, stats, counts).wait(context_.queue);
    context_.ops.norm_merge(context_.queue, kind_, stats, parts, eps_, moments);
    context_.ops.norm_apply(context_.queue, x.local, moments, gamma, beta, y.local);
  }
  if (saved != nullptr) saved->moments = std::move(moments);
  return y;
}

void Norm::backward_add(const DistTensor& dy, const DistTensor& x, Saved& saved, DistTensor& dx) {
  const PhaseClock::Scope scope(context_.clock, "norm");
  const ConstTensorView gamma = vectors_.weights(gamma_).flat();
  Tensor sums = context_.make(context_.accumulator(), x.local.rows(), 2, MemoryKind::workspace);
  context_.ops.norm_backward_stats(context_.queue, dy.local, x.local, saved.moments, gamma, sums);
  if (context_.extent(Axis::k) > 1)
    context_.mesh.along(Axis::k).all_reduce(sums, ReduceOp::sum).wait(context_.queue);
  TensorView dgamma, dbeta;  // none of frozen vectors
  if (!vectors_.frozen()) {
    dgamma = vectors_.gradient_to_add(gamma_).flat();
    if (beta_ >= 0) dbeta = vectors_.gradient_to_add(beta_).flat();
  }
  context_.ops.norm_backward_apply(context_.queue, kind_, dy.local, x.local, saved.moments, gamma,
                                   sums, length_, true, dx.local, dgamma, dbeta);
  saved.moments.reset();
}

}  // namespace t3d
