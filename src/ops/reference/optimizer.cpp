// AdamW (and its direction alone), SGD with momentum and clipping, as the comments of the contract
// say them.
#include <cmath>

#include "ops/reference/matrix.hpp"
#include "ops/reference/reference_ops.hpp"

namespace t3d {
using reference::Matrix;

namespace {

double with(double number, const ConstTensorView& on_device) {
  return on_device.data == nullptr ? number : number * *on_device.as<double>();
}

/// Moves m and v; the result is the direction that they give.
Matrix adam_moments(const AdamWArgs& args) {
  const Matrix w = reference::read(args.weight), grad = reference::read(args.grad);
  Matrix m = reference::read(args.m), v = reference::read(args.v), direction = w;
  const auto step = static_cast<double>(args.step);
  const double correct_m = 1.0 - std::pow(args.beta1, step);
  const double correct_v = 1.0 - std::pow(args.beta2, step);
  const double scale = with(args.grad_scale, args.device_scale);
  for (index_t r = 0; r < w.rows(); ++r)
    for (index_t c = 0; c < w.cols(); ++c) {
      const double g = grad(r, c) * scale;
      m(r, c) = args.beta1 * m(r, c) + (1.0 - args.beta1) * g;
      v(r, c) = args.beta2 * v(r, c) + (1.0 - args.beta2) * g * g;
      const double root = std::sqrt(v(r, c) / correct_v) + args.eps;
      direction(r, c) = m(r, c) / correct_m / root + args.decay * w(r, c);
    }
  reference::write(m, args.m);
  reference::write(v, args.v);
  return direction;
}

}  // namespace

void ReferenceOps::adamw(Queue&, const AdamWArgs& args) {
  const Matrix direction = adam_moments(args);
  Matrix w = reference::read(args.weight);
  const double lr = with(args.lr, args.device_lr);
  for (index_t r = 0; r < w.rows(); ++r)
    for (index_t c = 0; c < w.cols(); ++c) w(r, c) -= lr * direction(r, c);
  reference::write(w, args.weight);
}

void ReferenceOps::adam_direction(Queue&, const AdamWArgs& args, TensorView direction) {
  reference::write(adam_moments(args), direction);
}

void ReferenceOps::sgd(Queue&, const SgdArgs& args) {
  Matrix w = reference::read(args.weight), v = reference::read(args.v);
  const Matrix grad = reference::read(args.grad);
  const double scale = with(args.grad_scale, args.device_scale);
  const double lr = with(args.lr, args.device_lr);
  for (index_t r = 0; r < w.rows(); ++r)
    for (index_t c = 0; c < w.cols(); ++c) {
      const double g = grad(r, c) * scale + args.decay * w(r, c);
      v(r, c) = args.momentum * v(r, c) + g;
      w(r, c) -= lr * (args.nesterov ? g + args.momentum * v(r, c) : v(r, c));
    }
  reference::write(w, args.weight);
  reference::write(v, args.v);
}

void ReferenceOps::clip_factor(Queue&, ConstTensorView squares, double clip_norm,
                               TensorView factor) {
  const double ratio = clip_norm / (std::sqrt(*squares.as<double>()) + 1e-6);
  const double limited = ratio > 1.0 ? 1.0 : ratio;  // keeps a NaN
  *factor.as<double>() = clip_norm > 0 ? limited : 1.0;
}

}  // namespace t3d
