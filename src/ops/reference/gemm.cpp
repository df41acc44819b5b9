// Matrix product by the definition, with the loops ordered so that the inner one is contiguous.
#include "ops/reference/matrix.hpp"
#include "ops/reference/reference_ops.hpp"

namespace t3d {
using reference::Matrix;

namespace {

Matrix transposed(const Matrix& a) {
  Matrix out(a.cols(), a.rows());
  for (index_t r = 0; r < a.rows(); ++r)
    for (index_t c = 0; c < a.cols(); ++c) out(c, r) = a(r, c);
  return out;
}

}  // namespace

void ReferenceOps::gemm(Queue&, const GemmArgs& args) {
  const TensorView& to = args.c;
  if (to.empty()) return;
  Matrix a = reference::read(args.a);
  Matrix b = reference::read(args.b);
  if (args.transpose_a) a = transposed(a);
  if (args.transpose_b) b = transposed(b);
  T3D_CHECK(a.rows() == to.rows && b.cols() == to.cols && a.cols() == b.rows(),
            "gemm [{},{}] x [{},{}] -> [{},{}]", a.rows(), a.cols(), b.rows(), b.cols(), to.rows,
            to.cols);
  Matrix c = args.accumulate ? reference::read(to) : Matrix(to.rows, to.cols);
  for (index_t m = 0; m < c.rows(); ++m)
    for (index_t k = 0; k < a.cols(); ++k)
      for (index_t n = 0; n < c.cols(); ++n) c(m, n) += a(m, k) * b(k, n);
  const Matrix bias = reference::read_or_zeros(args.bias, c.cols());
  for (index_t m = 0; m < c.rows(); ++m)
    for (index_t n = 0; n < c.cols(); ++n) c(m, n) += bias(0, n);
  reference::write(c, to);
}

}  // namespace t3d
