// AdamW, SGD and the factor of clipping. One pass over weights, state and gradient in packs of four
// numbers (16 bytes of fp32, 8 of a 16-bit gradient), two packs of every operand in flight per
// thread. Coefficients are made in fp64 on the host; the gradient's scale may also come from device
// memory, so that no step waits for the host to know the gradient's norm. Bytes per parameter, with
// g the size of a gradient: AdamW 24 + g, SGD 16 + g. Speed not measured.
#include <cmath>

#include "ops/cuda/cuda_ops.hpp"
#include "ops/cuda/elements.cuh"

namespace t3d::cuda {
namespace {

struct GradScale {
  double factor;
  const double* on_device;  // null: 1
  [[nodiscard]] __device__ __forceinline__ float value() const {
    return static_cast<float>(on_device == nullptr ? factor : factor * *on_device);
  }
};

template <class G>
struct AdamW {
  static constexpr int kWidth = 4, kItems = 2;
  Matrix<float> w, m, v;
  Matrix<const G> grad;
  GradScale grad_scale;
  float beta1, beta2, eps;
  float step_size;   // lr / (1 - beta1^step)
  float root_scale;  // 1 / sqrt(1 - beta2^step)
  float shrink;      // lr * decay

  template <int N>
  struct Item {
    Elements<float, N> w, m, v;
    Elements<G, N> grad;
    float scale;
  };
  template <int N>
  __device__ void load(Item<N>& item, index_t row, index_t col, int valid) const {
    item.w.load(w.at(row, col), valid);
    item.m.load(m.at(row, col), valid);
    item.v.load(v.at(row, col), valid);
    item.grad.load(grad.at(row, col), valid);
    item.scale = grad_scale.value();
  }
  template <int N>
  __device__ void finish(Item<N>& item, index_t row, index_t col, int valid) const {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float g = item.grad[i] * item.scale;
      float &w_now = item.w.word[i], &m_now = item.m.word[i], &v_now = item.v.word[i];
      m_now = beta1 * m_now + (1.0F - beta1) * g;
      v_now = beta2 * v_now + (1.0F - beta2) * g * g;
      const float root = sqrtf(v_now) * root_scale + eps;
      w_now -= step_size * m_now / root + shrink * w_now;
    }
    item.w.store(w.at(row, col), valid);
    item.m.store(m.at(row, col), valid);
    item.v.store(v.at(row, col), valid);
  }
};

template <class G>
struct Sgd {
  static constexpr int kWidth = 4, kItems = 2;
  Matrix<float> w, v;
  Matrix<const G> grad;
  GradScale grad_scale;
  float lr, momentum, decay;
  bool nesterov;

  template <int N>
  struct Item {
    Elements<float, N> w, v;
    Elements<G, N> grad;
    float scale;
  };
  template <int N>
  __device__ void load(Item<N>& item, index_t row, index_t col, int valid) const {
    item.w.load(w.at(row, col), valid);
    item.v.load(v.at(row, col), valid);
    item.grad.load(grad.at(row, col), valid);
    item.scale = grad_scale.value();
  }
  template <int N>
  __device__ void finish(Item<N>& item, index_t row, index_t col, int valid) const {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      float &w_now = item.w.word[i], &v_now = item.v.word[i];
      const float g = item.grad[i] * item.scale + decay * w_now;
      v_now = momentum * v_now + g;
      w_now -= lr * (nesterov ? g + momentum * v_now : v_now);
    }
    item.w.store(w.at(row, col), valid);
    item.v.store(v.at(row, col), valid);
  }
};

__global__ void limit_norm(const double* squares, double clip_norm, double* factor) {
  const double ratio = clip_norm / (sqrt(*squares) + 1e-6);
  const double limited = ratio > 1.0 ? 1.0 : ratio;  // keeps a NaN
  *factor = clip_norm > 0 ? limited : 1.0;
}

}  // namespace

void CudaOps::adamw(Queue& queue, const AdamWArgs& args) {
  const auto step = static_cast<double>(args.step);
  const double correct_m = 1.0 - std::pow(args.beta1, step);
  const double correct_v = 1.0 - std::pow(args.beta2, step);
  const TensorView w = args.weight.flat(), m = args.m.flat(), v = args.v.flat();
  const ConstTensorView grad = args.grad.flat();
  visit_activation(grad.dtype, [&]<class G>(G) {
    const AdamW<G> op{matrix_of<float>(w),
                      matrix_of<float>(m),
                      matrix_of<float>(v),
                      matrix_of<G>(grad),
                      {args.grad_scale, args.device_scale.as<double>()},
                      static_cast<float>(args.beta1),
                      static_cast<float>(args.beta2),
                      static_cast<float>(args.eps),
                      static_cast<float>(args.lr / correct_m),
                      static_cast<float>(1.0 / std::sqrt(correct_v)),
                      static_cast<float>(args.lr * args.decay)};
    for_each_element(queue, op, 1, w.cols, fit_packs({w, m, v, grad}, op.kWidth));
  });
}

void CudaOps::sgd(Queue& queue, const SgdArgs& args) {
  const TensorView w = args.weight.flat(), v = args.v.flat();
  const ConstTensorView grad = args.grad.flat();
  visit_activation(grad.dtype, [&]<class G>(G) {
    const Sgd<G> op{matrix_of<float>(w),
                    matrix_of<float>(v),
                    matrix_of<G>(grad),
                    {args.grad_scale, args.device_scale.as<double>()},
                    static_cast<float>(args.lr),
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

}  // namespace t3d::cuda
