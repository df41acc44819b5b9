// AdamW, SGD, steps along a direction, and the factors of clipping and of trust. One pass over
// weights, state and gradient in packs of four numbers (16 bytes of fp32, 8 of a 16-bit gradient),
// two packs of every operand in flight per thread. Coefficients are made in fp64 on the host; the
// gradient's scale and a factor of the learning rate may also come from device memory, so that no
// step waits for the host to know a norm. Bytes per parameter, with g the size of a gradient: AdamW
// 24 + g, its direction alone 24 + g, SGD 16 + g, axpby 12. Speed not measured.
#include <cmath>

#include "ops/cuda/cuda_ops.hpp"
#include "ops/cuda/elements.cuh"

namespace t3d::cuda {
namespace {

struct DeviceFactor {
  double host;
  const double* on_device;  // null: 1
  DeviceFactor(double host_, const ConstTensorView& device)
      : host(host_), on_device(device.as<double>()) {}
  [[nodiscard]] __device__ __forceinline__ float value() const {
    return static_cast<float>(on_device == nullptr ? host : host * *on_device);
  }
};

/// update = step_size m / (root of v) + shrink w, of which `to` gets w - update or update itself.
template <class G>
struct AdamW {
  static constexpr int kWidth = 4, kItems = 2;
  Matrix<const float> w;
  Matrix<float> m, v, to;
  Matrix<const G> grad;
  DeviceFactor grad_scale;
  DeviceFactor step_size;  // lr / (1 - beta1^step)
  DeviceFactor shrink;     // lr * decay
  float beta1, beta2, eps;
  float root_scale;  // 1 / sqrt(1 - beta2^step)
  bool subtract;

  template <int N>
  struct Item {
    Elements<float, N> w, m, v;
    Elements<G, N> grad;
    float grad_scale, step_size, shrink;
  };
  template <int N>
  __device__ void load(Item<N>& item, index_t row, index_t col, int valid) const {
    item.w.load(w.at(row, col), valid);
    item.m.load(m.at(row, col), valid);
    item.v.load(v.at(row, col), valid);
    item.grad.load(grad.at(row, col), valid);
    item.grad_scale = grad_scale.value();
    item.step_size = step_size.value();
    item.shrink = shrink.value();
  }
  template <int N>
  __device__ void finish(Item<N>& item, index_t row, index_t col, int valid) const {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float g = item.grad[i] * item.grad_scale;
      float &w_now = item.w.word[i], &m_now = item.m.word[i], &v_now = item.v.word[i];
      m_now = beta1 * m_now + (1.0F - beta1) * g;
      v_now = beta2 * v_now + (1.0F - beta2) * g * g;
      const float root = sqrtf(v_now) * root_scale + eps;
      const float update = item.step_size * m_now / root + item.shrink * w_now;
      w_now = subtract ? w_now - update : update;
    }
    item.w.store(to.at(row, col), valid);
    item.m.store(m.at(row, col), valid);
    item.v.store(v.at(row, col), valid);
  }
};

template <class G>
struct Sgd {
  static constexpr int kWidth = 4, kItems = 2;
  Matrix<float> w, v;
  Matrix<const G> grad;
  DeviceFactor grad_scale, lr;
  float momentum, decay;
  bool nesterov;

  template <int N>
  struct Item {
    Elements<float, N> w, v;
    Elements<G, N> grad;
    float grad_scale, lr;
  };
  template <int N>
  __device__ void load(Item<N>& item, index_t row, index_t col, int valid) const {
    item.w.load(w.at(row, col), valid);
    item.v.load(v.at(row, col), valid);
    item.grad.load(grad.at(row, col), valid);
    item.grad_scale = grad_scale.value();
    item.lr = lr.value();
  }
  template <int N>
  __device__ void finish(Item<N>& item, index_t row, index_t col, int valid) const {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      float &w_now = item.w.word[i], &v_now = item.v.word[i];
      const float g = item.grad[i] * item.grad_scale + decay * w_now;
      v_now = momentum * v_now + g;
      w_now -= item.lr * (nesterov ? g + momentum * v_now : v_now);
    }
    item.w.store(w.at(row, col), valid);
    item.v.store(v.at(row, col), valid);
  }
};

struct Axpby {
  static constexpr int kWidth = 4, kItems = 2;
  DeviceFactor a;
  Matrix<const float> x;
  DeviceFactor b;
  Matrix<float> y;

  template <int N>
  struct Item {
    Elements<float, N> x, y;
    float a, b;
  };
  template <int N>
  __device__ void load(Item<N>& item, index_t row, index_t col, int valid) const {
    item.x.load(x.at(row, col), valid);
    item.y.load(y.at(row, col), valid);
    item.a = a.value();
    item.b = b.value();
  }
  template <int N>
  __device__ void finish(Item<N>& item, index_t row, index_t col, int valid) const {
#pragma unroll
    for (int i = 0; i < N; ++i) item.y.word[i] = item.a * item.x[i] + item.b * item.y[i];
    item.y.store(y.at(row, col), valid);
  }
};

__global__ void limit_norm(const double* squares, double clip_norm, double* factor) {
  const double ratio = clip_norm / (sqrt(*squares) + 1e-6);
  const double limited = ratio > 1.0 ? 1.0 : ratio;  // keeps a NaN
  *factor = clip_norm > 0 ? limited : 1.0;
}

__global__ void __launch_bounds__(kElementThreads)
    trust_ratios(const double* numerators, const double* denominators, const double* gains,
                 index_t count, double* ratios) {
  const index_t i = blockIdx.x * index_t{kElementThreads} + threadIdx.x;
  if (i >= count) return;
  const double above = numerators[i], below = denominators[i];
  const double gain = gains == nullptr ? 1.0 : gains[i];
  ratios[i] = above == 0 || below == 0 ? gain : gain * sqrt(above / below);
}

void run_adamw(Queue& queue, const AdamWArgs& args, const DeviceFactor& step_size,
               const DeviceFactor& shrink, const TensorView& to, bool subtract) {
  const double correct_v = 1.0 - std::pow(args.beta2, static_cast<double>(args.step));
  const ConstTensorView w = args.weight.flat(), grad = args.grad.flat();
  const TensorView m = args.m.flat(), v = args.v.flat();
  visit_activation(grad.dtype, [&]<class G>(G) {
    const AdamW<G> op{matrix_of<float>(w),
                      matrix_of<float>(m),
                      matrix_of<float>(v),
                      matrix_of<float>(to),
                      matrix_of<G>(grad),
                      {args.grad_scale, args.device_scale},
                      step_size,
                      shrink,
                      static_cast<float>(args.beta1),
                      static_cast<float>(args.beta2),
                      static_cast<float>(args.eps),
                      static_cast<float>(1.0 / std::sqrt(correct_v)),
                      subtract};
    for_each_element(queue, op, 1, w.cols, fit_packs({w, m, v, grad, to}, op.kWidth));
  });
}

[[nodiscard]] double correction_of_m(const AdamWArgs& args) {
  return 1.0 - std::pow(args.beta1, static_cast<double>(args.step));
}

}  // namespace

void CudaOps::adamw(Queue& queue, const AdamWArgs& args) {
  run_adamw(queue, args, {args.lr / correction_of_m(args), args.device_lr},
            {args.lr * args.decay, args.device_lr}, args.weight.flat(), true);
}

void CudaOps::adam_direction(Queue& queue, const AdamWArgs& args, TensorView direction) {
  run_adamw(queue, args, {1.0 / correction_of_m(args), {}}, {args.decay, {}}, direction.flat(),
            false);
}

void CudaOps::sgd(Queue& queue, const SgdArgs& args) {
  const TensorView w = args.weight.flat(), v = args.v.flat();
  const ConstTensorView grad = args.grad.flat();
  visit_activation(grad.dtype, [&]<class G>(G) {
    const Sgd<G> op{matrix_of<float>(w),
                    matrix_of<float>(v),
                    matrix_of<G>(grad),
                    {args.grad_scale, args.device_scale},
                    {args.lr, args.device_lr},
                    static_cast<float>(args.momentum),
                    static_cast<float>(args.decay),
                    args.nesterov};
    for_each_element(queue, op, 1, w.cols, fit_packs({w, v, grad}, op.kWidth));
  });
}

void CudaOps::clip_factor(Queue& queue, ConstTensorView squares, double clip_norm,
                          TensorView factor) {
  LaunchShape shape;
  shape.threads = 1;
  launch(queue, shape, limit_norm, squares.as<double>(), clip_norm, factor.as<double>());
}

void CudaOps::axpby(Queue& queue, const Factor& a, ConstTensorView x, const Factor& b,
                    TensorView y) {
  flatten(x, y);
  const Axpby op{{a.host, a.device}, matrix_of<float>(x), {b.host, b.device}, matrix_of<float>(y)};
  for_each_element(queue, op, y.rows, y.cols, fit_packs({x, y}, op.kWidth));
}

void CudaOps::norm_ratios(Queue& queue, ConstTensorView numerators, ConstTensorView denominators,
                          ConstTensorView gains, TensorView ratios) {
  LaunchShape shape;
  shape.threads = kElementThreads;
  shape.blocks_x = blocks_for(ratios.cols, kElementThreads);
  launch(queue, shape, trust_ratios, numerators.as<double>(), denominators.as<double>(),
         gains.as<double>(), ratios.cols, ratios.as<double>());
}

}  // namespace t3d::cuda
