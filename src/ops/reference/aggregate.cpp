// Gram matrices, coefficients, linear combinations and steps along directions.
#include <cmath>

#include "ops/adasum_tree.hpp"
#include "ops/reference/matrix.hpp"
#include "ops/reference/reference_ops.hpp"

namespace t3d {
using reference::Matrix;

namespace {

double value_of(const Factor& factor) {
  return factor.device.data == nullptr ? factor.host : factor.host * *factor.device.as<double>();
}

double dot(const double* a, const double* b, index_t begin, index_t end) {
  double sum = 0;
  for (index_t c = begin; c < end; ++c) sum += a[c] * b[c];
  return sum;
}

}  // namespace

void ReferenceOps::axpby(Queue&, const Factor& a, ConstTensorView x, const Factor& b,
                         TensorView y) {
  const Matrix from = reference::read(x);
  Matrix to = reference::read(y);
  const double of_x = value_of(a), of_y = value_of(b);
  for (index_t r = 0; r < to.rows(); ++r)
    for (index_t c = 0; c < to.cols(); ++c) to(r, c) = of_x * from(r, c) + of_y * to(r, c);
  reference::write(to, y);
}

void ReferenceOps::norm_ratios(Queue&, ConstTensorView numerators, ConstTensorView denominators,
                               ConstTensorView gains, TensorView ratios) {
  const Matrix above = reference::read(numerators), below = reference::read(denominators);
  Matrix out = gains.data != nullptr ? reference::read(gains) : Matrix(1, ratios.cols);
  for (index_t c = 0; c < ratios.cols; ++c) {
    if (gains.data == nullptr) out(0, c) = 1.0;
    if (above(0, c) != 0 && below(0, c) != 0) out(0, c) *= std::sqrt(above(0, c) / below(0, c));
  }
  reference::write(out, ratios);
}

void ReferenceOps::gram(Queue&, ConstTensorView x, std::span<const Segment> segments,
                        TensorView gram) {
  const Matrix vectors = reference::read(x);
  Matrix out = reference::read(gram);
  const index_t n = vectors.rows();
  for (const Segment& s : segments)
    for (index_t i = 0; i < n; ++i)
      for (index_t j = i; j < n; ++j)
        out(s.group, adasum::packed_at(i, j, n)) +=
            dot(vectors.row(i), vectors.row(j), s.begin, s.end);
  reference::write(out, gram);
}

void ReferenceOps::combine(Queue&, ConstTensorView x, std::span<const Segment> segments,
                           ConstTensorView coefficients, TensorView out) {
  const Matrix vectors = reference::read(x), factors = reference::read(coefficients);
  Matrix sums = reference::read(out);
  for (const Segment& s : segments)
    for (index_t c = s.begin; c < s.end; ++c) {
      sums(0, c) = 0;
      for (index_t i = 0; i < vectors.rows(); ++i)
        if (const double factor = factors(s.group, i); factor != 0)
          sums(0, c) += factor * vectors(i, c);
    }
  reference::write(sums, out);
}

}  // namespace t3d
