// Cross-entropy over slices of the vocabulary: local statistics, merge, gradient.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/reference/matrix.hpp"
#include "ops/reference/reference_ops.hpp"

namespace t3d {
using reference::Matrix;

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
}

void ReferenceOps::xent_stats(Queue&, ConstTensorView logits, ConstTensorView targets, index_t col0,
                              TensorView stats) {
  const Matrix x = reference::read(logits);
  Matrix out(stats.rows, 3);
  for (index_t r = 0; r < out.rows(); ++r) {
    double max = -kInfinity, sum = 0;
    for (index_t c = 0; c < x.cols(); ++c) max = x(r, c) < max ? max : x(r, c);  // keeps a NaN
    for (index_t c = 0; c < x.cols(); ++c) sum += std::exp(x(r, c) - max);
    const index_t target = targets.as<std::int32_t>()[r];
    const bool here = target >= 0 && target >= col0 && target < col0 + x.cols();
    out(r, 0) = max, out(r, 1) = sum, out(r, 2) = here ? x(r, target - col0) : 0.0;
  }
  reference::write(out, stats);
}

void ReferenceOps::xent_merge(Queue&, ConstTensorView stats, index_t parts, ConstTensorView targets,
                              TensorView lse, TensorView loss) {
  const Matrix in = reference::read(stats);
  const index_t rows = lse.cols;
  Matrix l(1, rows), out(1, rows);
  for (index_t r = 0; r < rows; ++r) {
    double max = -kInfinity, sum = 0, target = 0;
    for (index_t p = 0; p < parts; ++p) max = std::max(max, in(p * rows + r, 0));
    for (index_t p = 0; p < parts; ++p) {
      const index_t row = p * rows + r;
      target += in(row, 2);
      if (in(row, 1) != 0) sum += in(row, 1) * std::exp(in(row, 0) - max);
    }
    l(0, r) = max + std::log(sum);
    out(0, r) = targets.as<std::int32_t>()[r] < 0 ? 0.0 : l(0, r) - target;
  }
  reference::write(l, lse);
  reference::write(out, loss);
}

void ReferenceOps::xent_grad(Queue&, TensorView logits, ConstTensorView targets, index_t col0,
                             ConstTensorView lse, double scale) {
  Matrix x = reference::read(logits);
  const Matrix l = reference::read(lse);
  for (index_t r = 0; r < x.rows(); ++r) {
    const index_t target = targets.as<std::int32_t>()[r];
    for (index_t c = 0; c < x.cols(); ++c) {
      const double onehot = col0 + c == target ? 1.0 : 0.0;
      x(r, c) = target < 0 ? 0.0 : (std::exp(x(r, c) - l(0, r)) - onehot) * scale;
    }
  }
  reference::write(x, logits);
}

}  // namespace t3d
