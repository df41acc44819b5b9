// AdamW and SGD: coefficients in fp64, one pass over memory in fp32. The factor of clipping, steps
// along directions.
#include <cmath>

#include "ops/cpu/cpu_ops.hpp"

namespace t3d {
namespace {

double with(double number, const ConstTensorView& on_device) {
  return on_device.data == nullptr ? number : number * *on_device.as<double>();
}

float value_of(const Factor& factor) {
  return static_cast<float>(with(factor.host, factor.device));
}

cpu::AdamWStep step_of(const AdamWArgs& args, double lr) {
  const auto step = static_cast<double>(args.step);
  const double correct_m = 1.0 - std::pow(args.beta1, step);
  const double correct_v = 1.0 - std::pow(args.beta2, step);
  return {static_cast<float>(args.beta1),
          static_cast<float>(args.beta2),
          static_cast<float>(args.eps),
          static_cast<float>(with(args.grad_scale, args.device_scale)),
          static_cast<float>(lr / correct_m),
          static_cast<float>(1.0 / std::sqrt(correct_v)),
          static_cast<float>(lr * args.decay)};
}

}  // namespace

void CpuOps::adamw(Queue& queue, const AdamWArgs& args) {
  const cpu::AdamWStep step = step_of(args, with(args.lr, args.device_lr));
  cpu::visit_activation(args.grad.dtype, [&]<class T>(T) {
    for_spans(queue, args.weight.rows, args.weight.cols, true, [&](index_t, index_t at, index_t n) {
      cpu::update_kernels_for<T>().adamw(args.weight.as<float>() + at, args.m.as<float>() + at,
                                         args.v.as<float>() + at, args.grad.as<T>() + at, step, n);
    });
  });
}

void CpuOps::adam_direction(Queue& queue, const AdamWArgs& args, TensorView direction) {
  const cpu::AdamWStep step = step_of(args, 1.0);
  cpu::visit_activation(args.grad.dtype, [&]<class T>(T) {
    for_spans(queue, args.weight.rows, args.weight.cols, true, [&](index_t, index_t at, index_t n) {
      cpu::update_kernels_for<T>().adam_direction(
          args.weight.as<float>() + at, args.m.as<float>() + at, args.v.as<float>() + at,
          args.grad.as<T>() + at, step, direction.as<float>() + at, n);
    });
  });
}

void CpuOps::sgd(Queue& queue, const SgdArgs& args) {
  const cpu::SgdStep coefficients{static_cast<float>(with(args.lr, args.device_lr)),
                                  static_cast<float>(args.momentum), static_cast<float>(args.decay),
                                  static_cast<float>(with(args.grad_scale, args.device_scale)),
                                  args.nesterov};
  cpu::visit_activation(args.grad.dtype, [&]<class T>(T) {
    for_spans(queue, args.weight.rows, args.weight.cols, true, [&](index_t, index_t at, index_t n) {
      cpu::update_kernels_for<T>().sgd(args.weight.as<float>() + at, args.v.as<float>() + at,
                                       args.grad.as<T>() + at, coefficients, n);
    });
  });
}

void CpuOps::clip_factor(Queue&, ConstTensorView squares, double clip_norm, TensorView factor) {
  const double ratio = clip_norm / (std::sqrt(*squares.as<double>()) + 1e-6);
  const double limited = ratio > 1.0 ? 1.0 : ratio;  // keeps a NaN
  *factor.as<double>() = clip_norm > 0 ? limited : 1.0;
}

void CpuOps::axpby(Queue& queue, const Factor& a, ConstTensorView x, const Factor& b,
                   TensorView y) {
  const float of_x = value_of(a), of_y = value_of(b);
  const bool flat = x.contiguous() && y.contiguous();
  for_spans(queue, y.rows, y.cols, flat, [&](index_t r, index_t c, index_t n) {
    cpu::kernels().update->axpby(of_x, cpu::row_of<float>(x, r) + c, of_y,
                                 cpu::row_of<float>(y, r) + c, n);
  });
}

void CpuOps::norm_ratios(Queue&, ConstTensorView numerators, ConstTensorView denominators,
                         ConstTensorView gains, TensorView ratios) {
  const auto *above = numerators.as<double>(), *below = denominators.as<double>();
  for (index_t c = 0; c < ratios.cols; ++c) {
    const double gain = gains.data == nullptr ? 1.0 : gains.as<double>()[c];
    const bool both = above[c] != 0 && below[c] != 0;
    ratios.as<double>()[c] = both ? gain * std::sqrt(above[c] / below[c]) : gain;
  }
}

}  // namespace t3d
