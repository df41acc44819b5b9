// AdamW and SGD: coefficients in fp64, one pass over memory in fp32. The factor of clipping.
#include <cmath>

#include "ops/cpu/cpu_ops.hpp"

namespace t3d {
namespace {

template <class Args>
float grad_scale_of(const Args& args) {
  const double factor =
      args.device_scale.data == nullptr ? 1.0 : *args.device_scale.template as<double>();
  return static_cast<float>(args.grad_scale * factor);
}

}  // namespace

void CpuOps::adamw(Queue& queue, const AdamWArgs& args) {
  const auto step = static_cast<double>(args.step);
  const double correct_m = 1.0 - std::pow(args.beta1, step);
  const double correct_v = 1.0 - std::pow(args.beta2, step);
  const cpu::AdamWStep coefficients{static_cast<float>(args.beta1),
                                    static_cast<float>(args.beta2),
                                    static_cast<float>(args.eps),
                                    grad_scale_of(args),
                                    static_cast<float>(args.lr / correct_m),
                                    static_cast<float>(1.0 / std::sqrt(correct_v)),
                                    static_cast<float>(args.lr * args.decay)};
  cpu::visit_activation(args.grad.dtype, [&]<class T>(T) {
    for_spans(queue, args.weight.rows, args.weight.cols, true, [&](index_t, index_t at, index_t n) {
      cpu::kernels_for<T>().adamw(args.weight.as<float>() + at, args.m.as<float>() + at,
                                  args.v.as<float>() + at, args.grad.as<T>() + at, coefficients, n);
    });
  });
}

void CpuOps::sgd(Queue& queue, const SgdArgs& args) {
  const cpu::SgdStep coefficients{static_cast<float>(args.lr), static_cast<float>(args.momentum),
                                  static_cast<float>(args.decay), grad_scale_of(args),
                                  args.nesterov};
  cpu::visit_activation(args.grad.dtype, [&]<class T>(T) {
    for_spans(queue, args.weight.rows, args.weight.cols, true, [&](index_t, index_t at, index_t n) {
      cpu::kernels_for<T>().sgd(args.weight.as<float>() + at, args.v.as<float>() + at,
                                args.grad.as<T>() + at, coefficients, n);
    });
  });
}

void CpuOps::clip_factor(Queue&, ConstTensorView squares, double clip_norm, TensorView factor) {
  const double ratio = clip_norm / (std::sqrt(*squares.as<double>()) + 1e-6);
  const double limited = ratio > 1.0 ? 1.0 : ratio;  // keeps a NaN
  *factor.as<double>() = clip_norm > 0 ? limited : 1.0;
}

}  // namespace t3d
