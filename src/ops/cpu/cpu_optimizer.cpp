// AdamW and SGD: coefficients in fp64, one pass over memory in fp32.
#include <cmath>

#include "ops/cpu/cpu_ops.hpp"

namespace t3d {

void CpuOps::adamw(Queue& queue, const AdamWArgs& args) {
  const auto step = static_cast<double>(args.step);
  const double correct_m = 1.0 - std::pow(args.beta1, step);
  const double correct_v = 1.0 - std::pow(args.beta2, step);
  const cpu::AdamWStep coefficients{static_cast<float>(args.beta1),
                                    static_cast<float>(args.beta2),
                                    static_cast<float>(args.eps),
                                    static_cast<float>(args.grad_scale),
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
                                  static_cast<float>(args.decay),
                                  static_cast<float>(args.grad_scale), args.nesterov};
  cpu::visit_activation(args.grad.dtype, [&]<class T>(T) {
    for_spans(queue, args.weight.rows, args.weight.cols, true, [&](index_t, index_t at, index_t n) {
      cpu::kernels_for<T>().sgd(args.weight.as<float>() + at, args.v.as<float>() + at,
                                args.grad.as<T>() + at, coefficients, n);
    });
  });
}

}  // namespace t3d
