#include "tensor3d/linear3d.hpp"

#include "comm/cost.hpp"
#include "core/error.hpp"

namespace t3d {

index_t Features::columns_per_group() const {
  index_t sum = 0;
  for (const index_t segment : segments) sum += segment;
  return sum;
}

Partition Features::columns_partition() const {
  return groups.scaled(columns_per_group(), groups.name());
}

Linear3d::Linear3d(const Context& context, const std::string& name, Axis out_axis, Features out,
                   Features in, ParamBucket& weights, ParamBucket* vectors, double init_std)
    : context_(context),
      out_axis_(out_axis),
      in_axis_(out_axis == Axis::j ? Axis::k : Axis::j),
      out_(std::move(out)),
      in_(std::move(in)),
      weights_(weights),
      vectors_(vectors) {
  T3D_CHECK(in_.segments.size() == 1, "{}: the input of a linear has one segment", name);
  out_panels_ = panels_of(out_, out_axis_, in_axis_);
  in_panels_ = panels_of(in_, in_axis_, out_axis_);
  out_columns_ = out_.columns_partition().size(context.coord(out_axis_));
  in_columns_ = in_.columns_partition().size(context.coord(in_axis_));
  const index_t col0 = in_.columns_partition().begin(context.coord(in_axis_));

  ParamEntry weight{name + ".weight",
                    out_.columns(),
                    in_.columns(),
                    false,
                    true,
                    {ParamInit::Kind::normal, init_std},
                    {},
                    0};
  ParamEntry bias{
      name + ".bias", out_.columns(), 1, true, false, {ParamInit::Kind::zeros, 0}, {}, 0};
  const index_t part = context.coord(out_axis_);
  const auto panels = static_cast<index_t>(out_panels_.size());
  const Partition split = Partition::even("panel", out_.groups.size(part), panels);
  for (index_t panel = 0; panel < panels; ++panel) {
    index_t base = 0;  // global row where the segment starts
    for (const index_t columns : out_.segments) {
      const index_t row0 = base + (out_.groups.begin(part) + split.begin(panel)) * columns;
      const index_t rows = split.size(panel) * columns;
      weight.segments.push_back({row0, col0, rows, in_columns_});
      bias.segments.push_back({row0, 0, rows, 1});
      base += out_.groups.length() * columns;
    }
  }
  weight_entry_ = weights_.add(std::move(weight));
  if (vectors_ != nullptr) bias_entry_ = vectors_->add(std::move(bias));
}

std::vector<Linear3d::Panel> Linear3d::panels_of(const Features& side, Axis axis,
                                                 Axis other) const {
  const index_t groups = side.groups.size(context_.coord(axis));
  const index_t n = side.panels ? context_.extent(other) : 1;
  const Partition split =
      Partition::even("panel", groups, n).scaled(side.columns_per_group(), "panel");
  std::vector<Panel> result;
  for (index_t panel = 0; panel < n; ++panel)
    result.push_back({split.begin(panel), split.size(panel)});
  return result;
}

Layout Linear3d::layout(const Features& side, Axis axis, Axis other,
                        const Partition& tokens) const {
  if (side.panels)
    return {cut(tokens, Axis::i),
            cut(side.columns_partition(), axis, other, side.columns_per_group())};
  return {cut(tokens, Axis::i, other, side.row_unit), cut(side.columns_partition(), axis)};
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
  const DimCut dim = cut(tokens, Axis::i, other, side.row_unit);
  result = dim.sub_split(context_.coord(Axis::i), context_.extent(other)).sizes();
  for (index_t& count : result) count *= panels.front().count;
  return result;
}

TensorView Linear3d::panel_of(TensorView stacked, index_t rows, const Panel& panel) const {
  return {stacked.flat().at(0, rows * panel.first), stacked.dtype, rows, panel.count};
}

ConstTensorView Linear3d::panel_of(ConstTensorView stacked, index_t rows,
                                   const Panel& panel) const {
  return {stacked.flat().at(0, rows * panel.first), stacked.dtype, rows, panel.count};
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

void Linear3d::multiply_forward(ConstTensorView x, TensorView y, index_t rows) {
  const PhaseClock::Scope scope(context_.clock, "matmul");
  const ConstTensorView weight = weights_.weights(weight_entry_);
  // The bias joins the sum over the contraction axis once: on its first rank.
  const bool with_bias = bias_entry_ >= 0 && context_.coord(in_axis_) == 0;
  for (const Panel& out : out_panels_) {
    bool first = true;
    for (const Panel& in : in_panels_) {
      GemmArgs args;
      args.a = panel_of(x, rows, in);
      args.b = weight.row_range(out.first, out.count).col_range(in.first, in.count);
      args.c = panel_of(y, rows, out);
      args.transpose_b = true;
      args.accumulate = !first;
      if (first && with_bias)
        args.bias = vectors_->weights(bias_entry_).flat().col_range(out.first, out.count);
      context_.ops.gemm(context_.queue, args);
      first = false;
    }
  }
}

void Linear3d::multiply_dgrad(ConstTensorView dy, TensorView dx, index_t rows) {
  const PhaseClock::Scope scope(context_.clock, "matmul");
  const ConstTensorView weight = weights_.weights(weight_entry_);
  for (const Panel& in : in_panels_) {
    bool first = true;
    for (const Panel& out : out_panels_) {
      GemmArgs args;
      args.a = panel_of(dy, rows, out);
      args.b = weight.row_range(out.first, out.count).col_range(in.first, in.count);
      args.c = panel_of(dx, rows, in);
      args.accumulate = !first;
      context_.ops.gemm(context_.queue, args);
      first = false;
    }
  }
}

void Linear3d::multiply_wgrad(ConstTensorView dy, ConstTensorView x, index_t rows) {
  const PhaseClock::Scope scope(context_.clock, "matmul");
  const ParamBucket::GradientTarget target = weights_.gradient(weight_entry_);
  for (const Panel& out : out_panels_) {
    for (const Panel& in : in_panels_) {
      GemmArgs args;
      args.a = panel_of(dy, rows, out);
      args.b = panel_of(x, rows, in);
      args.c = target.view.row_range(out.first, out.count).col_range(in.first, in.count);
      args.transpose_a = true;
      args.accumulate = target.accumulate;
      context_.ops.gemm(context_.queue, args);
    }
  }
}

DistTensor Linear3d::forward(const DistTensor& x, Saved* saved) {
  const Partition& tokens = x.layout.rows.partition;
  T3D_CHECK(x.layout == input_layout(tokens), "{} takes {}, got {}", weights_.name(),
            input_layout(tokens).describe(), x.layout.describe());
  const index_t rows = tokens.size(context_.coord(Axis::i));
  weights_.prefetch();
  Tensor buffer;
  const ConstTensorView gathered = gather(x, in_, out_axis_, in_panels_, buffer, "gather input");
  weights_.acquire();

  DistTensor y = DistTensor::make(context_, output_layout(tokens), context_.activation,
                                  MemoryKind::activations);
  const DType partial = partial_dtype(in_panels_);
  if (context_.extent(in_axis_) == 1 && partial == context_.activation) {
    multiply_forward(gathered, y.local.view().flat(), rows);
  } else {
    Tensor sum = context_.make(partial, 1, rows * out_columns_, MemoryKind::workspace);
    multiply_forward(gathered, sum, rows);
    const PhaseClock::Scope scope(context_.clock, "reduce output");
    context_.mesh.along(in_axis_)
        .reduce_scatter(sum, y.local.view().flat(),
                        counts(out_, in_axis_, rows, tokens, out_panels_))
        .wait(context_.queue);
  }
  weights_.release();
  if (saved != nullptr && context_.keep_inputs) saved->gathered = std::move(buffer);
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
      gather(dy, out_, in_axis_, out_panels_, dy_buffer, "gather gradient");
  weights_.acquire();

  DistTensor dx = DistTensor::make(context_, input_layout(tokens), context_.activation,
                                   MemoryKind::activations);
  const DType partial = partial_dtype(out_panels_);
  Tensor sum;
  Work scatter;
  if (context_.extent(out_axis_) == 1 && partial == context_.activation) {
    multiply_dgrad(dy_whole, dx.local.view().flat(), rows);
  } else {
    sum = context_.make(partial, 1, rows * in_columns_, MemoryKind::workspace);
    multiply_dgrad(dy_whole, sum, rows);
    scatter = context_.mesh.along(out_axis_).reduce_scatter(
        sum, dx.local.view().flat(), counts(in_, out_axis_, rows, tokens, in_panels_));
  }
  weights_.release();

  // The weight gradient runs while dX is on its way.
  if (context_.extent(out_axis_) == 1) {
    multiply_wgrad(dy_whole, x.local.view().flat(), rows);
  } else {
    if (!saved.gathered.allocated())
      (void)gather(x, in_, out_axis_, in_panels_, saved.gathered, "gather input");
    multiply_wgrad(dy_whole, saved.gathered, rows);
  }
  saved.gathered.reset();
  const PhaseClock::Scope scope(context_.clock, "reduce input gradient");
  scatter.wait(context_.queue);
  return dx;
}

// Each rank sums the part of dY that it holds at rest; the vector bucket's plane adds the rest.
void Linear3d::add_bias_gradient(const DistTensor& dy) {
  if (bias_entry_ < 0) return;
  TensorView target = vectors_->gradient_to_add(bias_entry_).flat();
  if (out_.panels) {
    const Panel& own = out_panels_[static_cast<std::size_t>(context_.coord(in_axis_))];
    target = target.col_range(own.first, own.count);
  }
  const PhaseClock::Scope scope(context_.clock, "bias gradient");
  context_.ops.column_sums(context_.queue, dy.local, target);
}

void Linear3d::predict(Ledger& ledger, const Partition& tokens, bool backward) const {
  const index_t rows = tokens.size(context_.coord(Axis::i));
  const auto x = counts(in_, out_axis_, rows, tokens, in_panels_);
  const auto y = counts(out_, in_axis_, rows, tokens, out_panels_);
  const int at_o = static_cast<int>(context_.coord(out_axis_));
  const int at_c = static_cast<int>(context_.coord(in_axis_));
  const std::string o(name_of(out_axis_));
  const std::string c(name_of(in_axis_));
  const auto gather = [&](const std::string& axis, const auto& sizes, int rank) {
    ledger.count(Verb::all_gather, axis, all_gather_bytes(sizes, rank, context_.activation));
  };
  if (!backward) {
    gather(o, x, at_o);
    ledger.count(Verb::reduce_scatter, c, reduce_scatter_bytes(y, at_c, partial_dtype(in_panels_)));
    return;
  }
  gather(c, y, at_c);
  ledger.count(Verb::reduce_scatter, o, reduce_scatter_bytes(x, at_o, partial_dtype(out_panels_)));
  if (!context_.keep_inputs) gather(o, x, at_o);
}

}  // namespace t3d
