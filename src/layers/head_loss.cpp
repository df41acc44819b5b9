#include "layers/head_loss.hpp"

#include <algorithm>
#include <vector>

#include "comm/cost.hpp"
#include "core/error.hpp"

namespace t3d {
namespace {

// Large enough for efficient matmuls and few messages, small beside the activations of a block.
constexpr index_t kChunkBytes = index_t{128} << 20;

std::vector<index_t> times(std::vector<index_t> counts, index_t factor) {
  for (index_t& count : counts) count *= factor;
  return counts;
}

}  // namespace

HeadLoss::HeadLoss(const Context& context, const ModelShape& shape, ParamBucket& table, int entry)
    : context_(context), shape_(shape), table_(table), entry_(entry) {}

// Equal on all ranks of a slab, so by the widest vocabulary slice.
std::vector<HeadLoss::Chunk> HeadLoss::chunks(index_t rows) const {
  const index_t row_bytes =
      std::max<index_t>(1, shape_.vocab.largest() * size_of(context_.reduce_dtype()));
  const index_t n = std::max<index_t>(1, (rows * row_bytes + kChunkBytes - 1) / kChunkBytes);
  const Partition split = Partition::even("chunk", rows, n);
  std::vector<Chunk> result;
  for (index_t part = 0; part < n; ++part)
    if (split.size(part) > 0)
      result.push_back({split.begin(part), split.size(part),
                        Partition::even("rows", split.size(part), context_.extent(Axis::k))});
  return result;
}

std::vector<index_t> HeadLoss::hidden_counts(const Partition& tokens) const {
  const Partition rows = shape_.residual(tokens).rows.sub_split(context_.coord(Axis::i),
                                                                context_.extent(Axis::j));
  return times(rows.sizes(), shape_.hidden.size(context_.coord(Axis::k)));
}

Tensor HeadLoss::gather_hidden(const DistTensor& h) {
  const Partition& tokens = h.layout.rows.partition;
  Tensor whole = context_.make(context_.activation, tokens.size(context_.coord(Axis::i)),
                               h.local.cols(), MemoryKind::gathered);
  context_.mesh.along(Axis::j)
      .all_gather(h.local, whole.view().flat(), hidden_counts(tokens))
      .wait(context_.queue);
  return whole;
}

// Logits of the chunk's rows at rest here, [n_k x V_j]; the sum over k is scattered by rows.
Tensor HeadLoss::make_logits(ConstTensorView h, const Chunk& chunk) {
  const ConstTensorView weight = table_.weights(entry_);
  const index_t own = chunk.over_k.size(context_.coord(Axis::k));
  Tensor logits = context_.make(context_.activation, own, weight.rows, MemoryKind::workspace);
  GemmArgs args;
  args.a = h.row_range(chunk.first, chunk.rows);
  args.b = weight;
  args.transpose_b = true;
  if (context_.extent(Axis::k) == 1 && context_.reduce_dtype() == context_.activation) {
    args.c = logits;
    context_.ops.gemm(context_.queue, args);
    return logits;
  }
  Tensor sum = context_.make(context_.reduce_dtype(), chunk.rows, weight.rows, MemoryKind::workspace);
  args.c = sum;
  context_.ops.gemm(context_.queue, args);
  context_.mesh.along(Axis::k)
      .reduce_scatter(sum.view().flat(), logits.view().flat(), times(chunk.over_k.sizes(), weight.rows))
      .wait(context_.queue);
  return logits;
}

void HeadLoss::merge_loss(Tensor& logits, ConstTensorView targets, Tensor& lse, TensorView loss_sum) {
  const index_t rows = logits.rows();
  const index_t parts = context_.extent(Axis::j);
  const index_t j = context_.coord(Axis::j);
  const DType acc = context_.accumulator();
  Tensor stats = context_.make(acc, parts * rows, 3, MemoryKind::workspace);
  const TensorView own = stats.view().row_range(j * rows, rows);
  context_.ops.xent_stats(context_.queue, logits, targets, shape_.vocab.begin(j), own);
  if (parts > 1) {
    const std::vector<index_t> counts(static_cast<std::size_t>(parts), rows * 3);
    context_.mesh.along(Axis::j).all_gather(own, stats, counts).wait(context_.queue);
  }
  Tensor loss = context_.make(acc, 1, rows, MemoryKind::workspace);
  context_.ops.xent_merge(context_.queue, stats, parts, targets, lse, loss);
  if (j == 0) context_.ops.sum(context_.queue, loss, loss_sum);
}

void HeadLoss::evaluate(const DistTensor& h, ConstTensorView targets, TensorView loss_sum) {
  const PhaseClock::Scope scope(context_.clock, "head");
  table_.prefetch();
  const Tensor whole = gather_hidden(h);
  table_.acquire();
  for (const Chunk& chunk : chunks(whole.rows())) {
    Tensor logits = make_logits(whole, chunk);
    const index_t k = context_.coord(Axis::k);
    const ConstTensorView own = targets.col_range(chunk.first + chunk.over_k.begin(k), logits.rows());
    Tensor lse = context_.make(context_.accumulator(), 1, logits.rows(), MemoryKind::workspace);
    merge_loss(logits, own, lse, loss_sum);
  }
  table_.release();
}

DistTensor HeadLoss::train(const DistTensor& h, ConstTensorView targets, double scale,
                           TensorView loss_sum) {
  const PhaseClock::Scope scope(context_.clock, "head");
  table_.prefetch();
  const Tensor whole = gather_hidden(h);
  table_.acquire();
  const bool reduces = context_.extent(Axis::j) > 1 || context_.reduce_dtype() != context_.activation;
  DistTensor dh{h.layout, context_.make(context_.activation, h.local.rows(), h.local.cols(),
                                        MemoryKind::activations)};
  Tensor partial;
  if (reduces)
    partial = context_.make(context_.reduce_dtype(), whole.rows(), whole.cols(), MemoryKind::workspace);
  const TensorView dwhole = reduces ? partial.view() : dh.local.view();
  for (const Chunk& chunk : chunks(whole.rows())) {
    Tensor logits = make_logits(whole, chunk);
    const index_t k = context_.coord(Axis::k);
    const ConstTensorView own = targets.col_range(chunk.first + chunk.over_k.begin(k), logits.rows());
    Tensor lse = context_.make(context_.accumulator(), 1, logits.rows(), MemoryKind::workspace);
    merge_loss(logits, own, lse, loss_sum);
    context_.ops.xent_grad(context_.queue, logits, own, shape_.vocab.begin(context_.coord(Axis::j)),
                           lse, scale);
    chunk_backward(logits, chunk, whole, dwhole);
  }
  table_.release();
  if (reduces)
    context_.mesh.along(Axis::j)
        .reduce_scatter(partial.view().flat(), dh.local.view().flat(),
                        hidden_counts(h.layout.rows.partition))
        .wait(context_.queue);
  return dh;
}

void HeadLoss::chunk_backward(Tensor& logits, const Chunk& chunk, ConstTensorView h, TensorView dh) {
  Tensor gathered;
  ConstTensorView dlogits = logits;
  if (context_.extent(Axis::k) > 1) {
    gathered = context_.make(context_.activation, chunk.rows, logits.cols(), MemoryKind::gathered);
    context_.mesh.along(Axis::k)
        .all_gather(logits, gathered.view().flat(), times(chunk.over_k.sizes(), logits.cols()))
        .wait(context_.queue);
    dlogits = gathered;
  }
  GemmArgs dgrad;
  dgrad.a = dlogits;
  dgrad.b = table_.weights(entry_);
  dgrad.c = dh.row_range(chunk.first, chunk.rows);
  context_.ops.gemm(context_.queue, dgrad);
  const ParamBucket::GradientTarget target = table_.gradient(entry_);
  GemmArgs wgrad;
  wgrad.a = dlogits;
  wgrad.b = h.row_range(chunk.first, chunk.rows);
  wgrad.c = target.view;
  wgrad.transpose_a = true;
  wgrad.accumulate = target.accumulate;
  context_.ops.gemm(context_.queue, wgrad);
}

Tensor HeadLoss::logits_of_row(const DistTensor& h, index_t row) {
  const Partition& tokens = h.layout.rows.partition;
  const index_t owner = tokens.part_of(row);
  const DType acc = context_.accumulator();
  table_.prefetch();
  const Tensor whole = gather_hidden(h);
  table_.acquire();
  const std::vector<index_t> counts = shape_.vocab.sizes();
  Tensor part = context_.make(acc, 1, shape_.vocab.size(context_.coord(Axis::j)), MemoryKind::workspace);
  Tensor logits = context_.make(acc, 1, shape_.vocab.length(), MemoryKind::workspace);
  if (context_.coord(Axis::i) == owner) {
    GemmArgs args;
    args.a = whole.view().row_range(row - tokens.begin(owner), 1);
    args.b = table_.weights(entry_);
    args.c = part;
    args.transpose_b = true;
    context_.ops.gemm(context_.queue, args);
    context_.mesh.along(Axis::k).all_reduce(part, ReduceOp::sum).wait(context_.queue);
    context_.mesh.along(Axis::j).all_gather(part, logits, counts).wait(context_.queue);
  }
  table_.release();
  context_.mesh.along(Axis::i).broadcast(logits, static_cast<int>(owner)).wait(context_.queue);
  return logits;
}

void HeadLoss::predict(Ledger& ledger, const Partition& tokens, bool training) const {
  const int j = static_cast<int>(context_.coord(Axis::j));
  const int k = static_cast<int>(context_.coord(Axis::k));
  const index_t columns = shape_.vocab.size(j);
  const std::vector<index_t> hidden = hidden_counts(tokens);
  const DType act = context_.activation;
  ledger.count(Verb::all_gather, "j", all_gather_bytes(hidden, j, act));
  for (const Chunk& chunk : chunks(tokens.size(context_.coord(Axis::i)))) {
    const std::vector<index_t> logits = times(chunk.over_k.sizes(), columns);
    ledger.count(Verb::reduce_scatter, "k", reduce_scatter_bytes(logits, k, context_.reduce_dtype()));
    const std::vector<index_t> stats(static_cast<std::size_t>(context_.extent(Axis::j)),
                                     chunk.over_k.size(k) * 3);
    ledger.count(Verb::all_gather, "j", all_gather_bytes(stats, j, context_.accumulator()));
    if (training) ledger.count(Verb::all_gather, "k", all_gather_bytes(logits, k, act));
  }
  if (training)
    ledger.count(Verb::reduce_scatter, "j", reduce_scatter_bytes(hidden, j, context_.reduce_dtype()));
}

}  // namespace t3d
