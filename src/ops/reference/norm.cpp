// Layer and RMS normalisation in the distributed form: local moments, merge, apply; and backward.
#include <cmath>

#include "ops/reference/matrix.hpp"
#include "ops/reference/reference_ops.hpp"

namespace t3d {
using reference::Matrix;

void ReferenceOps::norm_stats(Queue&, NormKind kind, ConstTensorView x, TensorView stats) {
  const Matrix in = reference::read(x);
  Matrix out(stats.rows, 3);
  for (index_t r = 0; r < in.rows(); ++r) {
    const auto count = static_cast<double>(in.cols());
    double sum = 0, m2 = 0;
    for (index_t c = 0; c < in.cols(); ++c) sum += in(r, c);
    const double mean = kind == NormKind::layer && in.cols() > 0 ? sum / count : 0.0;
    for (index_t c = 0; c < in.cols(); ++c) m2 += (in(r, c) - mean) * (in(r, c) - mean);
    out(r, 0) = count, out(r, 1) = mean, out(r, 2) = m2;
  }
  reference::write(out, stats);
}

void ReferenceOps::norm_merge(Queue&, NormKind kind, ConstTensorView stats, index_t parts,
                              double eps, TensorView moments) {
  const Matrix in = reference::read(stats);
  Matrix out(moments.rows, 2);
  for (index_t r = 0; r < out.rows(); ++r) {
    double count = 0, mean = 0, m2 = 0;
    for (index_t p = 0; p < parts; ++p) {
      const index_t row = p * out.rows() + r;
      const double n = in(row, 0);
      if (n == 0) continue;
      const double delta = kind == NormKind::layer ? in(row, 1) - mean : 0.0;
      m2 += in(row, 2) + delta * delta * count * n / (count + n);
      mean += delta * n / (count + n);
      count += n;
    }
    out(r, 0) = mean;
    out(r, 1) = count > 0 ? 1.0 / std::sqrt(m2 / count + eps) : 0.0;
  }
  reference::write(out, moments);
}

void ReferenceOps::norm_apply(Queue&, ConstTensorView x, ConstTensorView moments,
                              ConstTensorView gamma, ConstTensorView beta, TensorView y) {
  const Matrix in = reference::read(x), m = reference::read(moments), g = reference::read(gamma);
  const Matrix b = reference::read_or_zeros(beta, x.cols);
  Matrix out(y.rows, y.cols);
  for (index_t r = 0; r < out.rows(); ++r)
    for (index_t c = 0; c < out.cols(); ++c)
      out(r, c) = (in(r, c) - m(r, 0)) * m(r, 1) * g(0, c) + b(0, c);
  reference::write(out, y);
}

void ReferenceOps::norm_backward_stats(Queue&, ConstTensorView dy, ConstTensorView x,
                                       ConstTensorView moments, ConstTensorView gamma,
                                       TensorView sums) {
  const Matrix d = reference::read(dy), in = reference::read(x);
  const Matrix m = reference::read(moments), g = reference::read(gamma);
  Matrix out(sums.rows, 2);
  for (index_t r = 0; r < in.rows(); ++r)
    for (index_t c = 0; c < in.cols(); ++c) {
      const double grad = d(r, c) * g(0, c);
      out(r, 0) += grad;
      out(r, 1) += grad * (in(r, c) - m(r, 0)) * m(r, 1);
    }
  reference::write(out, sums);
}

void ReferenceOps::norm_backward_apply(Queue&, NormKind kind, ConstTensorView dy, ConstTensorView x,
                                       ConstTensorView moments, ConstTensorView gamma,
                                       ConstTensorView sums, index_t length, bool accumulate,
                                       TensorView dx, TensorView dgamma, TensorView dbeta) {
  const Matrix d = reference::read(dy), in = reference::read(x), m = reference::read(moments);
  const Matrix g = reference::read(gamma), s = reference::read(sums);
  Matrix out = accumulate ? reference::read(dx) : Matrix(dx.rows, dx.cols);
  Matrix d_gamma = reference::read_or_zeros(dgamma, x.cols);
  Matrix d_beta = reference::read_or_zeros(dbeta, x.cols);
  const auto n = static_cast<double>(length);
  for (index_t r = 0; r < in.rows(); ++r)
    for (index_t c = 0; c < in.cols(); ++c) {
      const double xhat = (in(r, c) - m(r, 0)) * m(r, 1);
      const double centre = kind == NormKind::layer ? s(r, 0) / n : 0.0;
      out(r, c) += m(r, 1) * (d(r, c) * g(0, c) - centre - xhat * s(r, 1) / n);
      d_gamma(0, c) += d(r, c) * xhat;
      d_beta(0, c) += d(r, c);
    }
  reference::write(out, dx);
  if (dgamma.data != nullptr) reference::write(d_gamma, dgamma);
  if (dbeta.data != nullptr) reference::write(d_beta, dbeta);
}

}  // namespace t3d
