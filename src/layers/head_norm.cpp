#include "layers/head_norm.hpp"

namespace t3d {

HeadNorm::HeadNorm(const Context& context, const std::string& name, double eps,
                   ParamBucket& vectors)
    : context_(context), eps_(eps), vectors_(vectors), gamma_(vectors.entry(name + ".weight")) {}

// The norms' verbs take one head as a row: the columns of the heads are copied together and back.
void HeadNorm::forward(TensorView heads, Saved* saved) {
  const ConstTensorView gamma = vectors_.weights(gamma_).flat();
  const index_t rows = heads.rows * heads.cols / gamma.cols;
  const DType acc = context_.accumulator();
  Tensor input = context_.make(heads.dtype, rows, gamma.cols, MemoryKind::activations);
  Tensor moments = context_.make(acc, rows, 2, MemoryKind::activations);
  {
    Tensor stats = context_.make(acc, rows, 3, MemoryKind::workspace);
    Tensor y = context_.make(heads.dtype, rows, gamma.cols, MemoryKind::workspace);
    context_.ops.copy(context_.queue, heads, input.view().reshaped(heads.rows, heads.cols));
    context_.ops.norm_forward(context_.queue,
                              {NormKind::rms, input, {}, gamma, {}, eps_, stats, moments, y});
    context_.ops.copy(context_.queue, y.view().reshaped(heads.rows, heads.cols), heads);
  }
  if (saved == nullptr) return;
  saved->input = std::move(input);
  saved->moments = std::move(moments);
}

void HeadNorm::backward(TensorView dheads, Saved& saved) {
  const ConstTensorView gamma = vectors_.weights(gamma_).flat();
  const index_t rows = saved.input.rows(), size = gamma.cols;
  Tensor dy = context_.make(dheads.dtype, rows, size, MemoryKind::workspace);
  Tensor dx = context_.make(dheads.dtype, rows, size, MemoryKind::workspace);
  Tensor sums = context_.make(context_.accumulator(), rows, 2, MemoryKind::workspace);
  context_.ops.copy(context_.queue, dheads, dy.view().reshaped(dheads.rows, dheads.cols));
  context_.ops.norm_backward_stats(context_.queue, dy, saved.input, saved.moments, gamma, sums);
  const TensorView dgamma =
      vectors_.frozen() ? TensorView() : vectors_.gradient_to_add(gamma_).flat();
  context_.ops.norm_backward_apply(context_.queue, NormKind::rms, dy, saved.input, saved.moments,
                                   gamma, sums, size, false, dx, dgamma, {});
  context_.ops.copy(context_.queue, dx.view().reshaped(dheads.rows, dheads.cols), dheads);
  saved = {};
}

}  // namespace t3d
