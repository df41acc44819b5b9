#include "tensor3d/adapter.hpp"

#include <algorithm>

namespace t3d {

Adapter::Adapter(const Context& context, const std::string& name, const LinearShape& shape,
                 const std::vector<index_t>& segments, const LoraOptions& options, ParamBucket& a,
                 ParamBucket& b)
    : context_(context),
      rank_(options.rank),
      parts_(std::ssize(segments)),
      factor_(options.factor()),
      a_(a),
      b_(b),
      a_entry_(a.entry(name + std::string(kAdapterA))),
      b_entry_(b.entry(name + std::string(kAdapterB))),
      to_low_({{0, parts_ * rank_}}, shape.in_panels(context.mesh.shape(), context.mesh.coord())) {
  const index_t per_group = shape.out.columns_per_group();
  index_t row = 0;
  for (const Panel& panel : shape.out_panels(context.mesh.shape(), context.mesh.coord())) {
    const index_t groups = panel.count / per_group;
    for (index_t part = 0; part < parts_; ++part) {
      const auto segment = static_cast<std::size_t>(segments[static_cast<std::size_t>(part)]);
      index_t before = 0;  // columns of a group in the segments before
      for (std::size_t at = 0; at < segment; ++at) before += shape.out.segments[at];
      const index_t count = groups * shape.out.segments[segment];
      const bool goes_on = std::any_of(pieces_.begin(), pieces_.end(), [&](const Piece& piece) {
        return piece.low == part * rank_;
      });
      pieces_.push_back({panel, groups * before, row, count, part * rank_, goes_on});
      row += count;
    }
  }
}

Tensor Adapter::make_low(index_t rows) const {
  return context_.make(context_.accumulator(), rows, parts_ * rank_, MemoryKind::workspace);
}

Tensor Adapter::scaled(Tensor low) const {
  if (factor_ != 1) context_.ops.scale(context_.queue, low, factor_);
  if (low.dtype() == context_.activation) return low;
  Tensor narrow = context_.make(context_.activation, low.rows(), low.cols(), MemoryKind::workspace);
  context_.ops.copy(context_.queue, low, narrow);
  return narrow;
}

Tensor Adapter::low(ConstTensorView x, index_t rows, bool rows_alone) {
  Tensor u = make_low(rows);
  to_low_.forward(context_.ops, context_.queue, x, a_.weights(a_entry_), {}, u, rows, rows_alone);
  return scaled(std::move(u));
}

void Adapter::forward(ConstTensorView x, TensorView y, index_t rows, bool rows_alone) {
  const Tensor u = low(x, rows, rows_alone);
  const ConstTensorView b = b_.weights(b_entry_);
  for (const Piece& piece : pieces_) {
    GemmArgs args;
    args.a = u.view().col_range(piece.low, rank_);
    args.b = b.row_range(piece.row, piece.count);
    args.c = panel_of(y, rows, piece.panel).col_range(piece.first, piece.count);
    args.transpose_b = true;
    args.accumulate = true;
    args.rows_alone = rows_alone;
    context_.ops.gemm(context_.queue, args);
  }
}

Tensor Adapter::input_gradient(ConstTensorView dy, TensorView dx, index_t rows) {
  const ConstTensorView b = b_.weights(b_entry_);
  Tensor sums = make_low(rows);
  for (const Piece& piece : pieces_) {
    GemmArgs args;
    args.a = panel_of(dy, rows, piece.panel).col_range(piece.first, piece.count);
    args.b = b.row_range(piece.row, piece.count);
    args.c = sums.view().col_range(piece.low, rank_);
    args.accumulate = piece.part_goes_on;
    context_.ops.gemm(context_.queue, args);
  }
  Tensor dlow = scaled(std::move(sums));
  to_low_.input_gradient(context_.ops, context_.queue, dlow, a_.weights(a_entry_), dx, rows, true);
  return dlow;
}

void Adapter::weight_gradient(ConstTensorView dy, ConstTensorView x, const Tensor& dlow,
                              index_t rows) {
  const ParamBucket::GradientTarget da = a_.gradient(a_entry_), db = b_.gradient(b_entry_);
  to_low_.weight_gradient(context_.ops, context_.queue, dlow, x, da.view, da.accumulate, rows);
  const Tensor u = low(x, rows, false);
  for (const Piece& piece : pieces_) {
    GemmArgs args;
    args.a = panel_of(dy, rows, piece.panel).col_range(piece.first, piece.count);
    args.b = u.view().col_range(piece.low, rank_);
    args.c = db.view.row_range(piece.row, piece.count);
    args.transpose_a = true;
    args.accumulate = db.accumulate;
    context_.ops.gemm(context_.queue, args);
  }
}

}  // namespace t3d
