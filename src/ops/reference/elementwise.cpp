// Fill, copy, add, scale, column sums, dropout, sums and initial values.
#include "ops/reference/matrix.hpp"
#include "ops/reference/reference_ops.hpp"

namespace t3d {
using reference::Matrix;

void ReferenceOps::fill(Queue&, TensorView x, double value) {
  Matrix out(x.rows, x.cols);
  for (index_t r = 0; r < x.rows; ++r)
    for (index_t c = 0; c < x.cols; ++c) out(r, c) = value;
  reference::write(out, x);
}

void ReferenceOps::copy(Queue&, ConstTensorView from, TensorView to) {
  reference::write(reference::read(from), to);
}

void ReferenceOps::add(Queue&, ConstTensorView a, TensorView b) {
  const Matrix term = reference::read(a);
  Matrix out = reference::read(b);
  for (index_t r = 0; r < out.rows(); ++r)
    for (index_t c = 0; c < out.cols(); ++c) out(r, c) += term(r, c);
  reference::write(out, b);
}

void ReferenceOps::scale(Queue&, TensorView x, double factor) {
  Matrix out = reference::read(x);
  for (index_t r = 0; r < out.rows(); ++r)
    for (index_t c = 0; c < out.cols(); ++c) out(r, c) *= factor;
  reference::write(out, x);
}

void ReferenceOps::column_sums(Queue&, ConstTensorView x, TensorView out) {
  const Matrix in = reference::read(x);
  Matrix sums = reference::read(out);
  for (index_t r = 0; r < in.rows(); ++r)
    for (index_t c = 0; c < in.cols(); ++c) sums(0, c) += in(r, c);
  reference::write(sums, out);
}

void ReferenceOps::dropout(Queue&, const DropoutArgs& args) {
  Matrix x = reference::read(args.x);
  const double factor = 1.0 / (1.0 - args.p);
  for (index_t r = 0; r < x.rows(); ++r)
    for (index_t c = 0; c < x.cols(); ++c) {
      const index_t index = (args.row0 + r) * args.global_cols + args.col0 + c;
      const bool kept = static_cast<double>(random_uniform(args.key, index)) >= args.p;
      x(r, c) = kept ? x(r, c) * factor : 0.0;
    }
  reference::write(x, args.x);
}

void ReferenceOps::sum_squares(Queue&, ConstTensorView x, TensorView result) {
  const Matrix in = reference::read(x);
  double total = 0;
  for (index_t r = 0; r < in.rows(); ++r)
    for (index_t c = 0; c < in.cols(); ++c) total += in(r, c) * in(r, c);
  *result.as<double>() += total;
}

void ReferenceOps::sum(Queue&, ConstTensorView x, TensorView result) {
  const Matrix in = reference::read(x);
  double total = 0;
  for (index_t r = 0; r < in.rows(); ++r)
    for (index_t c = 0; c < in.cols(); ++c) total += in(r, c);
  *result.as<double>() += total;
}

void ReferenceOps::random_init(Queue&, TensorView x, const RandomKey& key, index_t row0,
                               index_t col0, index_t global_cols, double std) {
  Matrix out(x.rows, x.cols);
  for (index_t r = 0; r < x.rows; ++r)
    for (index_t c = 0; c < x.cols; ++c)
      out(r, c) = std * random_normal(key, (row0 + r) * global_cols + col0 + c);
  reference::write(out, x);
}

}  // namespace t3d
