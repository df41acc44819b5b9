#include "layers/embedding.hpp"

#include <vector>

#include "layers/block.hpp"

namespace t3d {

Embedding::Embedding(const Context& context, const ModelShape& shape, ParamBucket& table,
                     ParamBucket& vectors)
    : context_(context),
      shape_(shape),
      table_(table),
      vectors_(vectors),
      table_entry_(table.entry("wte.weight")),
      position_entry_(vectors.table().find("wpe.weight")) {}

// Elements at rest on each member of axis j, of this slab's [rows x H_k].
std::vector<index_t> Embedding::counts(const Partition& tokens) const {
  std::vector<index_t> result =
      shape_.residual(tokens)
          .rows.sub_split(context_.coord(Axis::i), context_.extent(Axis::j))
          .sizes();
  for (index_t& count : result) count *= shape_.hidden().size(context_.coord(Axis::k));
  return result;
}

DistTensor Embedding::forward(ConstTensorView ids, const Partition& tokens, const PassInfo& pass) {
  const PhaseClock::Scope scope(context_.clock, "embedding");
  const index_t row0 = shape_.vocab().begin(context_.coord(Axis::j));
  DistTensor x = DistTensor::make(context_, shape_.residual(tokens), context_.activation,
                                  MemoryKind::activations);
  table_.acquire();
  const ConstTensorView table = table_.weights(table_entry_);
  if (context_.extent(Axis::j) == 1) {
    context_.ops.embed_gather(context_.queue, ids, row0, table, x.local);
  } else {
    // Exactly one rank of j contributes to a row, so the sum is exact in any dtype.
    Tensor partial =
        context_.make(context_.activation, ids.cols, table.cols, MemoryKind::workspace);
    context_.ops.embed_gather(context_.queue, ids, row0, table, partial);
    context_.mesh.along(Axis::j)
        .reduce_scatter(partial, x.local.view().flat(), counts(tokens))
        .wait(context_.queue);
  }
  table_.release();
  const Box box = x.layout.box(context_.mesh.shape(), context_.mesh.coord());
  if (position_entry_ >= 0 && pass.continues())
    add_own_positions(x, pass.kept->positions);
  else if (position_entry_ >= 0)
    context_.ops.add_positions(context_.queue, vectors_.weights(position_entry_), box.row0,
                               pass.length, x.local);
  residual_dropout(context_, x, pass, shape_.model.dropout, 0);
  return x;
}

// Every row has a position of its own.
void Embedding::add_own_positions(DistTensor& x, ConstTensorView positions) {
  const Box box = x.layout.box(context_.mesh.shape(), context_.mesh.coord());
  const index_t slab = x.layout.rows.partition.begin(context_.coord(Axis::i));
  const ConstTensorView table = vectors_.weights(position_entry_);
  Tensor rows = context_.make(table.dtype, box.rows, box.cols, MemoryKind::workspace);
  context_.ops.embed_gather(context_.queue, positions.col_range(box.row0 - slab, box.rows), 0,
                            table, rows);
  context_.ops.add(context_.queue, rows, x.local);
}

void Embedding::backward(DistTensor dx, ConstTensorView ids, const PassInfo& pass) {
  const PhaseClock::Scope scope(context_.clock, "embedding");
  residual_dropout(context_, dx, pass, shape_.model.dropout, 0);
  if (position_entry_ >= 0 && !vectors_.frozen()) add_position_gradient(dx, pass);
  if (table_.frozen()) return;
  const Partition& tokens = dx.layout.rows.partition;
  const index_t row0 = shape_.vocab().begin(context_.coord(Axis::j));
  const TensorView dtable = table_.gradient_to_add(table_entry_);
  if (context_.extent(Axis::j) == 1) {
    context_.ops.embed_scatter_add(context_.queue, ids, row0, dx.local, dtable);
    return;
  }
  Tensor gathered = context_.make(context_.activation, ids.cols, dtable.cols, MemoryKind::gathered);
  context_.mesh.along(Axis::j)
      .all_gather(dx.local, gathered.view().flat(), counts(tokens))
      .wait(context_.queue);
  context_.ops.embed_scatter_add(context_.queue, ids, row0, gathered, dtable);
}

// Row t of the batch adds to table row t mod length: contiguous runs of at most one sequence.
void Embedding::add_position_gradient(const DistTensor& dx, const PassInfo& pass) {
  const Box box = dx.layout.box(context_.mesh.shape(), context_.mesh.coord());
  const TensorView dtable = vectors_.gradient_to_add(position_entry_);
  for (index_t row = 0; row < box.rows;) {
    const index_t at = (box.row0 + row) % pass.length;
    const index_t n = std::min(pass.length - at, box.rows - row);
    context_.ops.add(context_.queue, dx.local.view().row_range(row, n), dtable.row_range(at, n));
    row += n;
  }
}

}  // namespace t3d
