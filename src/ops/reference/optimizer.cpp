// AdamW, SGD with momentum and clipping, as the comments of the contract say them.
#include <cmath>

#include "ops/reference/matrix.hpp"
#include "ops/reference/reference_ops.hpp"

namespace t3d {
using reference::Matrix;

namespace {

template <class Args>
double grad_scale_of(const Args& args) {
  return args.device_scale.data == nullptr
             ? args.grad_scale
             : args.grad_scale * *args.device_scale.template as<double>();
}

}  // namespace

void ReferenceOps::adamw(Queue&, const AdamWArgs& args) {
  Matrix w = reference::read(args.weight), m = reference::read(args.m), v = reference::read(args.v);
  const Matrix grad = reference::read(args.grad);
  const auto step = static_cast<double>(args.step);
  const double correct_m = 1.0 - std::pow(args.beta1, step);
  const double correct_v = 1.0 - std::pow(args.beta2, step);
  const double scale = grad_scale_of(args);
  for (index_t r = 0; r < w.rows(); ++r)
    for (index_t c = 0; c < w.cols(); ++c) {
      const double g = grad(r, c) * scale;
      m(r, c) = args.beta1 * m(r, c) + (1.0 - args.beta1) * g;
      v(r, c) = args.beta2 * v(r, c) + (1.0 - args.beta2) * g * g;
      const double root = std::sqrt(v(r, c) / correct_v) + args.eps;
      w(r, c) -= args.lr * (m(r, c) / correct_m / root + args.decay * w(r, c));
    }
  reference::write(w, args.weight);
  reference::write(m, args.m);
  reference::write(v, args.v);
}

void ReferenceOps::sgd(Queue&, const SgdArgs& args) {
  Matrix w = reference::read(args.weight), v = reference::read(args.v);
  const Matrix grad = reference::read(args.grad);
  const double scale = grad_scale_of(args);
  for (index_t r = 0; r < w.rows(); ++r)
    for (index_t c = 0; c < w.cols(); ++c) {
      const double g = grad(r, c) * scale + args.decay * w(r, c);
      v(r, c) = args.momentum * v(r, c) + g;
      w(r, c) -= args.lr * (args.nesterov ? g + args.momentum * v(r, c) : v(r, c));
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
