// gelu(x) = x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3); silu(x) = x / (1 + exp(-x)).
#include <cmath>
#include <numbers>

#include "ops/reference/matrix.hpp"
#include "ops/reference/reference_ops.hpp"

namespace t3d {
using reference::Matrix;

namespace {

constexpr double kCubic = 0.044715;
const double kSlope = std::sqrt(2.0 * std::numbers::inv_pi);

double gelu(double x) { return 0.5 * x * (1.0 + std::tanh(kSlope * (x + kCubic * x * x * x))); }

double gelu_derivative(double x) {
  const double t = std::tanh(kSlope * (x + kCubic * x * x * x));
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * kSlope * (1.0 + 3.0 * kCubic * x * x);
}

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

}  // namespace

void ReferenceOps::activation_forward(Queue&, Activation kind, ConstTensorView x, TensorView y) {
  const Matrix in = reference::read(x);
  Matrix out(y.rows, y.cols);
  for (index_t r = 0; r < out.rows(); ++r)
    for (index_t c = 0; c < out.cols(); ++c)
      out(r, c) = kind == Activation::gelu_tanh
                      ? gelu(in(r, c))
                      : in(r, c) * sigmoid(in(r, c)) * in(r, out.cols() + c);
  reference::write(out, y);
}

void ReferenceOps::activation_backward(Queue&, Activation kind, ConstTensorView x,
                                       ConstTensorView dy, TensorView dx) {
  const Matrix in = reference::read(x), d = reference::read(dy);
  Matrix out(dx.rows, dx.cols);
  for (index_t r = 0; r < d.rows(); ++r)
    for (index_t c = 0; c < d.cols(); ++c) {
      if (kind == Activation::gelu_tanh) {
        out(r, c) = d(r, c) * gelu_derivative(in(r, c));
        continue;
      }
      const double gate = in(r, c), up = in(r, d.cols() + c), s = sigmoid(gate);
      out(r, c) = d(r, c) * up * s * (1.0 + gate * (1.0 - s));
      out(r, d.cols() + c) = d(r, c) * gate * s;
    }
  reference::write(out, dx);
}

}  // namespace t3d
