// Rows of a table by id, positions, and the gradient of the table.
#include "ops/reference/matrix.hpp"
#include "ops/reference/reference_ops.hpp"

namespace t3d {
using reference::Matrix;

void ReferenceOps::embed_gather(Queue&, ConstTensorView ids, index_t row0, ConstTensorView table,
                                TensorView out) {
  Matrix rows(out.rows, out.cols);
  for (index_t t = 0; t < out.rows; ++t) {
    const index_t row = ids.as<std::int32_t>()[t] - row0;
    if (row < 0 || row >= table.rows) continue;
    const Matrix from = reference::read(table.row_range(row, 1));
    for (index_t c = 0; c < out.cols; ++c) rows(t, c) = from(0, c);
  }
  reference::write(rows, out);
}

void ReferenceOps::put_rows(Queue&, ConstTensorView places, ConstTensorView from, TensorView to) {
  for (index_t t = 0; t < from.rows; ++t) {
    const index_t place = places.as<std::int32_t>()[t];
    if (place >= 0) reference::write(reference::read(from.row_range(t, 1)), to.row_range(place, 1));
  }
}

void ReferenceOps::add_positions(Queue&, ConstTensorView table, index_t first_row, index_t length,
                                 TensorView x) {
  const Matrix positions = reference::read(table);
  Matrix out = reference::read(x);
  for (index_t t = 0; t < out.rows(); ++t)
    for (index_t c = 0; c < out.cols(); ++c) out(t, c) += positions((first_row + t) % length, c);
  reference::write(out, x);
}

void ReferenceOps::embed_scatter_add(Queue&, ConstTensorView ids, index_t row0, ConstTensorView dx,
                                     TensorView dtable) {
  const Matrix grad = reference::read(dx);
  Matrix table = reference::read(dtable);
  for (index_t t = 0; t < grad.rows(); ++t) {
    const index_t row = ids.as<std::int32_t>()[t] - row0;
    if (row < 0 || row >= table.rows()) continue;
    for (index_t c = 0; c < grad.cols(); ++c) table(row, c) += grad(t, c);
  }
  reference::write(table, dtable);
}

}  // namespace t3d
