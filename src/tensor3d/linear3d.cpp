#include "tensor3d/linear3d.hpp"

#include "core/error.hpp"

namespace t3d {

Linear3d::Linear3d(const Context& context, const std::string& name, const LinearShape& shape,
                   ParamBucket& weights, ParamBucket* vectors)
    : context_(context),
      out_axis_(shape.out_axis),
      in_axis_(shape.in_axis),
      out_(shape.out),
      in_(shape.in),
      weights_(weights),
      vectors_(vectors),
      weight_entry_(weights.entry(name + ".weight")),
      bias_entry_(vectors != nullptr ? vectors->entry(name + ".bias") : -1),
      products_(shape, context.mesh.shape(), context.mesh.coord()),
      out_columns_(out_.columns_partition().size(context.coord(out_axis_))),
      in_columns_(in_.columns_partition().size(context.coord(in_axis_))) {}

void Linear3d::adapt(const std::string& name, const ModelConfig& model, BlockLinear which,
                     const LinearShape& shape, const AdapterBuckets& adapters) {
  const std::vector<index_t> segments = adapted_segments(model, which);
  if (segments.empty()) return;
  const bool out_over_j = out_axis_ == Axis::j;
  ParamBucket &a = out_over_j ? *adapters.over_k : *adapters.over_j,
              &b = out_over_j ? *adapters.over_j : *adapters.over_k;
  adapter_.emplace(context_, name, shape, segments, model.lora, a, b);
}

namespace {

/// The second cut of a side by rows, where it is by rows.
DimCut cut_rows(const Features& side, const Partition& tokens, Axis other) {
  return cut(tokens, Axis::i, other, side.whole_sequences ? tokens.unit() : 1);
}

}  // namespace

Layout Linear3d::layout(const Features& side, Axis axis, Axis other,
                        const Partition& tokens) const {
  if (side.panels)
    return {cut(tokens, Axis::i),
            cut(side.columns_partition(), axis, other, side.columns_per_group())};
  return {cut_rows(side, tokens, other), cut(side.columns_partition(), axis)};
}

Layout Linear3d::input_layout(const Partition& tokens) const {
  return layout(in_, in_axis_, out_axis_, tokens);
}

Layout Linear3d::output_layout(const Partition& tokens) const {
  return layout(out_, out_axis_, in_axis_, tokens);
}

// Elements of the gathered block [rows x columns] at rest on each member of axis `other`.
std::vector<index_t> Linear3d::counts(const Features& side, Axis other, index_t rows,
                                      const Partition& tokens,
                                      const std::vector<Panel>& panels) const {
  std::vector<index_t> result;
  if (side.panels) {
    for (const Panel& panel : panels) result.push_back(rows * panel.count);
    return result;
  }
  const DimCut dim = cut_rows(side, tokens, other);
  result = dim.sub_split(context_.coord(Axis::i), context_.extent(other)).sizes();
  for (index_t& count : result) count *= panels.front().count;
  return result;
}

// The whole block [M_i x columns] as a flat view: x itself on an axis of one rank, else `buffer`.
TensorView Linear3d::gather(const DistTensor& x, const Features& side, Axis other,
                            const std::vector<Panel>& panels, Tensor& buffer,
                            const char* phase) const {
  if (context_.extent(other) == 1) return x.local.view().flat();
  const PhaseClock::Scope scope(context_.clock, phase);
  const Partition& tokens = x.layout.rows.partition;
  const index_t rows = tokens.size(context_.coord(Axis::i));
  const std::vector<index_t> sizes = counts(side, other, rows, tokens, panels);
  index_t total = 0;
  for (const index_t size : sizes) total += size;
  buffer = context_.make(x.local.dtype(), 1, total, MemoryKind::gathered);
  context_.mesh.along(other).all_gather(x.local, buffer, sizes).wait(context_.queue);
  return buffer;
}

// Sums over several panels, like sums over ranks, are kept in fp32 until the last one is in.
DType Linear3d::partial_dtype(const std::vector<Panel>& summed) const {
  return summed.size() > 1 ? context_.accumulator() : context_.reduce_dtype();
}

void Linear3d::multiply_forward(ConstTensorView x, TensorView y, index_t rows, bool rows_alone) {
  const PhaseClock::Scope scope(context_.clock, "matmul");
  // The bias joins the sum over the contraction axis once: on its first rank.
  const bool with_bias = bias_entry_ >= 0 && context_.coord(in_axis_) == 0;
  products_.forward(context_.ops, context_.queue, x, weights_.weights(weight_entry_),
                    with_bias ? vectors_->weights(bias_entry_).flat() : ConstTensorView(), y, rows,
                    rows_alone);
  if (adapter_) adapter_->forward(x, y, rows, rows_alone);
}

Tensor Linear3d::multiply_dgrad(ConstTensorView dy, TensorView dx, index_t rows) {
  const PhaseClock::Scope scope(context_.clock, "matmul");
  products_.input_gradient(context_.ops, context_.queue, dy, weights_.weights(weight_entry_), dx,
                           rows);
  return adapter_ ? adapter_->input_gradient(dy, dx, rows) : Tensor();
}

void Linear3d::multiply_wgrad(ConstTensorView dy, ConstTensorView x, const Tensor& dlow,
                              index_t rows) {
  const PhaseClock::Scope scope(context_.clock, "matmul");
  if (adapter_) adapter_->weight_gradient(dy, x, dlow, rows);
  if (weights_.frozen()) return;
  const ParamBucket::GradientTarget target = weights_.gradient(weight_entry_);
  products_.weight_gradient(context_.ops, context_.queue, dy, x, target.view, target.accumulate,
                            rows);
}

DistTensor Linear3d::forward(const DistTensor& x, Saved* saved, bool rows_alone) {
  const Partition& tokens = x.layout.rows.partition;
  T3D_CHECK(x.layout == input_layout(tokens), "{} takes {}, got {}", weights_.name(),
            input_layout(tokens).describe(), x.layout.describe());
  const index_t rows = tokens.size(context_.coord(Axis::i));
  weights_.prefetch();
  Tensor buffer;
  const ConstTensorView gathered = gather(x, in_, out_axis_, products_.in, buffer, "gather input");
  weights_.acquire();

  DistTensor y = DistTensor::make(context_, output_layout(tokens), context_.activation,
                                  MemoryKind::activations);
  const DType partial = partial_dtype(products_.in);
  if (context_.extent(in_axis_) == 1 && partial == context_.activation) {
    multiply_forward(gathered, y.local.view().flat(), rows, rows_alone);
  } else {
    Tensor sum = context_.make(partial, 1, rows * out_columns_, MemoryKind::workspace);
    multiply_forward(gathered, sum, rows, rows_alone);
    const PhaseClock::Scope scope(context_.clock, "reduce output");
    context_.mesh.along(in_axis_)
        .reduce_scatter(sum, y.local.view().flat(),
                        counts(out_, in_axis_, rows, tokens, products_.out))
        .wait(context_.queue);
  }
  weights_.release();
  if (saved != nullptr && context_.keep_inputs && needs_input())
    saved->gathered = std::move(buffer);
  return y;
}

DistTensor Linear3d::backward(const DistTensor& dy, const DistTensor& x, Saved& saved) {
  const Partition& tokens = dy.layout.rows.partition;
  T3D_CHECK(dy.layout == output_layout(tokens), "{} gives {}, got the gradient of {}",
            weights_.name(), output_layout(tokens).describe(), dy.layout.describe());
  const index_t rows = tokens.size(context_.coord(Axis::i));
  weights_.prefetch();
  add_bias_gradient(dy);
  Tensor dy_buffer;
  const ConstTensorView dy_whole =
      gather(dy, out_, in_axis_, products_.out, dy_buffer, "gather gradient");
  weights_.acquire();

  DistTensor dx = DistTensor::make(context_, input_layout(tokens), context_.activation,
                                   MemoryKind::activations);
  const DType partial = partial_dtype(products_.out);
  Tensor sum, dlow;
  Work scatter;
  if (context_.extent(out_axis_) == 1 && partial == context_.activation) {
    dlow = multiply_dgrad(dy_whole, dx.local.view().flat(), rows);
  } else {
    sum = context_.make(partial, 1, rows * in_columns_, MemoryKind::workspace);
    dlow = multiply_dgrad(dy_whole, sum, rows);
    scatter = context_.mesh.along(out_axis_).reduce_scatter(
        sum, dx.local.view().flat(), counts(in_, out_axis_, rows, tokens, products_.in));
  }
  weights_.release();

  // The weight gradient runs while dX is on its way.
  if (needs_input()) weight_gradients(dy_whole, x, saved, dlow, rows);
  const PhaseClock::Scope scope(context_.clock, "reduce input gradient");
  scatter.wait(context_.queue);
  return dx;
}

void Linear3d::weight_gradients(ConstTensorView dy, const DistTensor& x, Saved& saved,
                                const Tensor& dlow, index_t rows) {
  if (context_.extent(out_axis_) == 1) {
    multiply_wgrad(dy, x.local.view().flat(), dlow, rows);
    return;
  }
  if (!saved.gathered.allocated())
    (void)gather(x, in_, out_axis_, products_.in, saved.gathered, "gather input");
  multiply_wgrad(dy, saved.gathered, dlow, rows);
  saved.gathered.reset();
}

// Each rank sums the part of dY that it holds at rest; the vector bucket's plane adds the rest.
void Linear3d::add_bias_gradient(const DistTensor& dy) {
  if (bias_entry_ < 0 || vectors_->frozen()) return;
  TensorView target = vectors_->gradient_to_add(bias_entry_).flat();
  if (out_.panels) {
    const Panel& own = products_.out[static_cast<std::size_t>(context_.coord(in_axis_))];
    target = target.col_range(own.first, own.count);
  }
  const PhaseClock::Scope scope(context_.clock, "bias gradient");
  context_.ops.column_sums(context_.queue, dy.local, target);
}

}  // namespace t3d
