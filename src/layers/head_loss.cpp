#include "layers/head_loss.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "tensor3d/logits_width.hpp"

namespace t3d {
HeadLoss::HeadLoss(const Context& context, const ModelShape& shape, ParamBucket& table, int entry)
    : context_(context), shape_(shape), table_(table), entry_(entry) {
  const index_t r = context.extent(Axis::k);
  for (index_t j = 0; j < context.extent(Axis::j); ++j) {
    const Partition slice = Partition::even("vocab", shape.vocab().size(j), r);
    for (index_t k = 0; k < r; ++k) vocab_counts_.push_back(slice.size(k));
    if (j == context.coord(Axis::j)) slice_ = slice;
  }
  first_ = shape.vocab().begin(context.coord(Axis::j)) + slice_.begin(context.coord(Axis::k));
}

// Equal on all ranks of a slab, so by the widest vocabulary slice.
Partition HeadLoss::chunks(index_t rows) const {
  const index_t widest = *std::max_element(vocab_counts_.begin(), vocab_counts_.end());
  const index_t bytes = rows * widest * size_of(context_.activation);
  return Partition::even(
      "chunk", rows,
      std::max<index_t>(1, (bytes + context_.logits_bytes - 1) / context_.logits_bytes));
}

// Elements of this slab's [rows x H_k] at rest on each member of j.
std::vector<index_t> HeadLoss::row_counts(const Partition& tokens) const {
  std::vector<index_t> counts =
      shape_.residual(tokens)
          .rows.sub_split(context_.coord(Axis::i), context_.extent(Axis::j))
          .sizes();
  for (index_t& count : counts) count *= shape_.hidden().size(context_.coord(Axis::k));
  return counts;
}

// Elements of the column panels [rows x H_k], one per member of k.
std::vector<index_t> HeadLoss::panel_counts(index_t rows) const {
  std::vector<index_t> counts = shape_.hidden().sizes();
  for (index_t& count : counts) count *= rows;
  return counts;
}

// The slab's rows, this rank's columns: [rows x H_k].
Tensor HeadLoss::gather_panel(const DistTensor& h) {
  const Partition& tokens = h.layout.rows.partition;
  const index_t rows = tokens.size(context_.coord(Axis::i));
  Tensor panel = context_.make(context_.activation, rows, h.local.cols(), MemoryKind::gathered);
  context_.mesh.along(Axis::j)
      .all_gather(h.local, panel.view().flat(), row_counts(tokens))
      .wait(context_.queue);
  return panel;
}

// The slab's rows whole: [rows x H].
Tensor HeadLoss::gather_hidden(const DistTensor& h) {
  const index_t rows = h.layout.rows.partition.size(context_.coord(Axis::i));
  Tensor panel = gather_panel(h);
  if (context_.extent(Axis::k) == 1) return panel;
  Tensor panels =
      context_.make(context_.activation, 1, rows * shape_.hidden().length(), MemoryKind::gathered);
  context_.mesh.along(Axis::k)
      .all_gather(panel.view().flat(), panels, panel_counts(rows))
      .wait(context_.queue);
  Tensor whole =
      context_.make(context_.activation, rows, shape_.hidden().length(), MemoryKind::gathered);
  for (index_t k = 0; k < context_.extent(Axis::k); ++k) {
    const index_t first = shape_.hidden().begin(k);
    const index_t columns = shape_.hidden().size(k);
    const TensorView from = panels.view().col_range(rows * first, rows * columns).flat();
    context_.ops.copy(context_.queue, from.reshaped(rows, columns),
                      whole.view().col_range(first, columns));
  }
  return whole;
}

// The sum over (j,k) of dwhole [rows x H], back in the residual layout.
DistTensor HeadLoss::scatter_hidden(Tensor dwhole, const Layout& layout) {
  const index_t rows = dwhole.rows();
  const DType dtype = dwhole.dtype();
  if (context_.extent(Axis::k) > 1) {
    Tensor panels = context_.make(dtype, 1, rows * shape_.hidden().length(), MemoryKind::workspace);
    for (index_t k = 0; k < context_.extent(Axis::k); ++k) {
      const index_t first = shape_.hidden().begin(k);
      const index_t columns = shape_.hidden().size(k);
      const TensorView to = panels.view().col_range(rows * first, rows * columns).flat();
      context_.ops.copy(context_.queue, dwhole.view().col_range(first, columns),
                        to.reshaped(rows, columns));
    }
    Tensor sum = context_.make(dtype, rows, shape_.hidden().size(context_.coord(Axis::k)),
                               MemoryKind::workspace);
    context_.mesh.along(Axis::k)
        .reduce_scatter(panels, sum.view().flat(), panel_counts(rows))
        .wait(context_.queue);
    dwhole = std::move(sum);
  }
  DistTensor dh = DistTensor::make(context_, layout, context_.activation, MemoryKind::activations);
  context_.mesh.along(Axis::j)
      .reduce_scatter(dwhole.view().flat(), dh.local.view().flat(),
                      row_counts(layout.rows.partition))
      .wait(context_.queue);
  return dh;
}

// W[V_jk x H] from the blocks W[V_j x H_k'] of the members of k.
ConstTensorView HeadLoss::own_weight(Tensor& buffer) {
  const ConstTensorView block = table_.weights(entry_);
  const index_t r = context_.extent(Axis::k);
  if (r == 1) return block;
  const index_t own = slice_.size(context_.coord(Axis::k));
  std::vector<Tensor> arriving;
  std::vector<Exchange> messages;
  for (index_t k = 0; k < r; ++k) {
    arriving.push_back(
        context_.make(block.dtype, own, shape_.hidden().size(k), MemoryKind::workspace));
    messages.push_back({static_cast<int>(k), block.row_range(slice_.begin(k), slice_.size(k)),
                        arriving.back().view()});
  }
  context_.mesh.along(Axis::k).exchange(std::move(messages)).wait(context_.queue);
  buffer = context_.make(block.dtype, own, shape_.hidden().length(), MemoryKind::gathered);
  for (index_t k = 0; k < r; ++k)
    context_.ops.copy(context_.queue, arriving[static_cast<std::size_t>(k)],
                      buffer.view().col_range(shape_.hidden().begin(k), shape_.hidden().size(k)));
  return buffer;
}

// The way back: dW[V_jk x H], by columns to the members of k, added to dW[V_j x H_k].
void HeadLoss::add_weight_gradient(const Tensor& gradient) {
  const index_t r = context_.extent(Axis::k);
  const TensorView block = table_.gradient_to_add(entry_);
  std::vector<Tensor> leaving;
  std::vector<Tensor> arriving;
  std::vector<Exchange> messages;
  for (index_t k = 0; k < r; ++k) {
    leaving.push_back(context_.make(gradient.dtype(), gradient.rows(), shape_.hidden().size(k),
                                    MemoryKind::workspace));
    context_.ops.copy(context_.queue,
                      gradient.view().col_range(shape_.hidden().begin(k), shape_.hidden().size(k)),
                      leaving.back());
    arriving.push_back(
        context_.make(gradient.dtype(), slice_.size(k), block.cols, MemoryKind::workspace));
    messages.push_back({static_cast<int>(k), leaving.back().view(), arriving.back().view()});
  }
  context_.mesh.along(Axis::k).exchange(std::move(messages)).wait(context_.queue);
  for (index_t k = 0; k < r; ++k)
    context_.ops.add(context_.queue, arriving[static_cast<std::size_t>(k)],
                     block.row_range(slice_.begin(k), slice_.size(k)));
}

HeadLoss::Logits HeadLoss::make_logits(ConstTensorView h, ConstTensorView weight) {
  const index_t width = logits_width(weight.rows);
  Logits logits;
  logits.memory = context_.make(context_.activation, h.rows, width, MemoryKind::workspace);
  logits.view = logits.memory.view().col_range(0, weight.rows);
  GemmArgs args;
  args.a = h;
  args.b = weight;
  args.c = logits.view;
  args.transpose_b = true;
  context_.ops.gemm(context_.queue, args);
  return logits;
}

// Adds the rows' losses; returns the log of the sum of exponentials of each row, over all ids.
Tensor HeadLoss::merge_loss(ConstTensorView logits, ConstTensorView targets, TensorView loss_sum) {
  const index_t rows = logits.rows;
  Communicator& plane = context_.mesh.plane_jk();
  const DType acc = context_.accumulator();
  Tensor stats = context_.make(acc, plane.size() * rows, 3, MemoryKind::workspace);
  const TensorView own = stats.view().row_range(plane.rank() * rows, rows);
  context_.ops.xent_stats(context_.queue, logits, targets, first_, own);
  if (plane.size() > 1) {
    const std::vector<index_t> counts(static_cast<std::size_t>(plane.size()), rows * 3);
    plane.all_gather(own, stats, counts).wait(context_.queue);
  }
  Tensor lse = context_.make(acc, 1, rows, MemoryKind::workspace);
  Tensor loss = context_.make(acc, 1, rows, MemoryKind::workspace);
  context_.ops.xent_merge(context_.queue, stats, plane.size(), targets, lse, loss);
  if (plane.rank() == 0) context_.ops.sum(context_.queue, loss, loss_sum);
  return lse;
}

void HeadLoss::evaluate(const DistTensor& h, ConstTensorView targets, TensorView loss_sum) {
  const PhaseClock::Scope scope(context_.clock, "head");
  table_.prefetch();
  const Tensor whole = gather_hidden(h);
  table_.acquire();
  Tensor buffer;
  const ConstTensorView weight = own_weight(buffer);
  const Partition split = chunks(whole.rows());
  for (index_t chunk = 0; chunk < split.parts(); ++chunk) {
    const index_t first = split.begin(chunk);
    const index_t rows = split.size(chunk);
    const Logits logits = make_logits(whole.view().row_range(first, rows), weight);
    (void)merge_loss(logits.view, targets.col_range(first, rows), loss_sum);
  }
  table_.release();
}

DistTensor HeadLoss::train(const DistTensor& h, ConstTensorView targets, double scale,
                           TensorView loss_sum) {
  const PhaseClock::Scope scope(context_.clock, "head");
  table_.prefetch();
  const Tensor whole = gather_hidden(h);
  table_.acquire();
  Tensor buffer;
  const ConstTensorView weight = own_weight(buffer);
  Tensor dwhole =
      context_.make(context_.reduce_dtype(), whole.rows(), whole.cols(), MemoryKind::workspace);
  // Without a cut over k the slice is the block, and its gradient adds in place.
  const bool direct = context_.extent(Axis::k) == 1;
  Tensor dslice;
  ParamBucket::GradientTarget target;
  if (table_.frozen()) {
    // no gradient of the weight
  } else if (direct) {
    target = table_.gradient(entry_);
  } else {
    dslice = context_.make(context_.accumulator(), weight.rows, weight.cols, MemoryKind::gradients);
    target = {dslice.view(), false};
  }
  const Partition split = chunks(whole.rows());
  for (index_t chunk = 0; chunk < split.parts(); ++chunk) {
    const index_t first = split.begin(chunk);
    const index_t rows = split.size(chunk);
    const ConstTensorView chunk_h = whole.view().row_range(first, rows);
    const ConstTensorView chunk_targets = targets.col_range(first, rows);
    const Logits logits = make_logits(chunk_h, weight);
    const Tensor lse = merge_loss(logits.view, chunk_targets, loss_sum);
    context_.ops.xent_grad(context_.queue, logits.view, chunk_targets, first_, lse, scale);
    chunk_backward(logits.view, chunk_h, weight, dwhole.view().row_range(first, rows), target.view,
                   target.accumulate);
    target.accumulate = true;
  }
  table_.release();
  if (dslice.allocated()) add_weight_gradient(dslice);
  return scatter_hidden(std::move(dwhole), h.layout);
}

void HeadLoss::chunk_backward(ConstTensorView dlogits, ConstTensorView h, ConstTensorView weight,
                              TensorView dh, TensorView dweight, bool accumulate) {
  GemmArgs dgrad;
  dgrad.a = dlogits;
  dgrad.b = weight;
  dgrad.c = dh;
  context_.ops.gemm(context_.queue, dgrad);
  if (table_.frozen()) return;
  GemmArgs wgrad;
  wgrad.a = dlogits;
  wgrad.b = h;
  wgrad.c = dweight;
  wgrad.transpose_a = true;
  wgrad.accumulate = accumulate;
  context_.ops.gemm(context_.queue, wgrad);
}

// [rows, V_j] of all j and all slabs: a rank has those of its slab and of its slice over j.
Tensor HeadLoss::join_logits(const Tensor& own, const RowsOfSlabs& rows) {
  const index_t vocab = shape_.vocab().length();
  std::vector<index_t> panels = shape_.vocab().sizes(), slabs;
  for (index_t& count : panels) count *= own.rows();
  index_t total = 0;
  for (const std::vector<index_t>& slab : rows) {
    slabs.push_back(std::ssize(slab) * vocab);
    total += std::ssize(slab);
  }
  Tensor slab = context_.make(own.dtype(), 1, own.rows() * vocab, MemoryKind::workspace);
  context_.mesh.along(Axis::j).all_gather(own, slab, panels).wait(context_.queue);
  Tensor all = context_.make(own.dtype(), 1, total * vocab, MemoryKind::workspace);
  context_.mesh.along(Axis::i).all_gather(slab, all, slabs).wait(context_.queue);
  Tensor result = context_.make(own.dtype(), total, vocab, MemoryKind::workspace);
  index_t at = 0, first = 0;
  for (const std::vector<index_t>& of_slab : rows) {
    const index_t count = std::ssize(of_slab);
    for (index_t j = 0; j < shape_.vocab().parts(); ++j) {
      const index_t columns = shape_.vocab().size(j);
      context_.ops.copy(
          context_.queue, all.view().col_range(at, count * columns).reshaped(count, columns),
          result.view().row_range(first, count).col_range(shape_.vocab().begin(j), columns));
      at += count * columns;
    }
    first += count;
  }
  return result;
}

// Sums of partial logits over k: of few rows they are fewer numbers than the weights are.
Tensor HeadLoss::logits_of(const DistTensor& h, const RowsOfSlabs& rows) {
  const PhaseClock::Scope scope(context_.clock, "head");
  table_.prefetch();
  const Tensor panel = gather_panel(h);
  const std::vector<index_t>& wanted = rows[static_cast<std::size_t>(context_.coord(Axis::i))];
  Tensor picked =
      context_.make(context_.activation, std::ssize(wanted), panel.cols(), MemoryKind::workspace);
  for (std::size_t at = 0; at < wanted.size(); ++at)
    context_.ops.copy(context_.queue, panel.view().row_range(wanted[at], 1),
                      picked.view().row_range(static_cast<index_t>(at), 1));
  table_.acquire();
  const ConstTensorView weight = table_.weights(entry_);
  Tensor logits =
      context_.make(context_.accumulator(), picked.rows(), weight.rows, MemoryKind::workspace);
  GemmArgs args;
  args.a = picked;
  args.b = weight;
  args.c = logits;
  args.transpose_b = true;
  args.rows_alone = true;
  context_.ops.gemm(context_.queue, args);
  table_.release();
  context_.mesh.along(Axis::k).all_reduce(logits.view().flat(), ReduceOp::sum).wait(context_.queue);
  return join_logits(logits, rows);
}

}  // namespace t3d
