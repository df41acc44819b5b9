// Element-by-element verbs over spans of memory, and sums over fixed chunks added in order.
#include <cmath>

#include "ops/cpu/cpu_ops.hpp"

namespace t3d {
namespace {

constexpr index_t kSumChunk = 1 << 16;  // elements; part of the result, not a tuning knob

template <class Fn>
void visit_any(DType type, Fn&& fn) {
  switch (type) {
    case DType::f64: return fn(double{});
    case DType::f32: return fn(float{});
    case DType::bf16: return fn(bf16{});
    case DType::f16: return fn(f16{});
    case DType::i32: return fn(std::int32_t{});
  }
}

// Pairs of fp32 and bf16 have vector kernels; everything else (fp64 scalars, ids) is rare.
template <class From, class To>
void copy_span(const From* from, To* to, index_t n) {
  const cpu::Kernels& k = cpu::kernels();
  if constexpr (std::is_same_v<From, To>)
    std::copy_n(from, n, to);
  else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, bf16>)
    k.copy_f32_bf16(from, to, n);
  else if constexpr (std::is_same_v<From, bf16> && std::is_same_v<To, float>)
    k.copy_bf16_f32(from, to, n);
  else
    for (index_t i = 0; i < n; ++i) to[i] = static_cast<To>(static_cast<double>(from[i]));
}

template <class From, class To>
void add_span(const From* a, To* b, index_t n) {
  const cpu::Kernels& k = cpu::kernels();
  if constexpr (std::is_same_v<From, float> && std::is_same_v<To, float>)
    k.add_f32_f32(a, b, n);
  else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, bf16>)
    k.add_f32_bf16(a, b, n);
  else if constexpr (std::is_same_v<From, bf16> && std::is_same_v<To, float>)
    k.add_bf16_f32(a, b, n);
  else if constexpr (std::is_same_v<From, bf16> && std::is_same_v<To, bf16>)
    k.add_bf16_bf16(a, b, n);
  else
    for (index_t i = 0; i < n; ++i)
      b[i] = static_cast<To>(static_cast<double>(b[i]) + static_cast<double>(a[i]));
}

}  // namespace

void CpuOps::activation_forward(Queue& queue, Activation kind, ConstTensorView x, TensorView y) {
  cpu::visit_activation(x.dtype, [&]<class T>(T) {
    const auto& k = cpu::kernels_for<T>();
    const bool flat = kind == Activation::gelu_tanh && x.contiguous() && y.contiguous();
    for_spans(queue, y.rows, y.cols, flat, [&](index_t r, index_t c, index_t n) {
      const T* in = cpu::row_of<T>(x, r) + c;
      T* out = cpu::row_of<T>(y, r) + c;
      if (kind == Activation::gelu_tanh)
        k.gelu(in, out, n);
      else
        k.swiglu(in, in + y.cols, out, n);
    });
  });
}

void CpuOps::activation_backward(Queue& queue, Activation kind, ConstTensorView x,
                                 ConstTensorView dy, TensorView dx) {
  cpu::visit_activation(x.dtype, [&]<class T>(T) {
    const auto& k = cpu::kernels_for<T>();
    const bool flat =
        kind == Activation::gelu_tanh && x.contiguous() && dy.contiguous() && dx.contiguous();
    for_spans(queue, dy.rows, dy.cols, flat, [&](index_t r, index_t c, index_t n) {
      const T* in = cpu::row_of<T>(x, r) + c;
      const T* grad = cpu::row_of<T>(dy, r) + c;
      T* out = cpu::row_of<T>(dx, r) + c;
      if (kind == Activation::gelu_tanh)
        k.gelu_backward(in, grad, out, n);
      else
        k.swiglu_backward(in, in + dy.cols, grad, out, out + dy.cols, n);
    });
  });
}

void CpuOps::fill(Queue& queue, TensorView x, double value) {
  visit_any(x.dtype, [&]<class T>(T) {
    const T number = static_cast<T>(value);
    for_spans(queue, x.rows, x.cols, x.contiguous(), [&](index_t r, index_t c, index_t n) {
      std::fill_n(cpu::row_of<T>(x, r) + c, n, number);
    });
  });
}

void CpuOps::copy(Queue& queue, ConstTensorView from, TensorView to) {
  const bool flat = from.contiguous() && to.contiguous();
  visit_any(from.dtype, [&]<class From>(From) {
    visit_any(to.dtype, [&]<class To>(To) {
      for_spans(queue, to.rows, to.cols, flat, [&](index_t r, index_t c, index_t n) {
        copy_span(cpu::row_of<From>(from, r) + c, cpu::row_of<To>(to, r) + c, n);
      });
    });
  });
}

void CpuOps::add(Queue& queue, ConstTensorView a, TensorView b) {
  const bool flat = a.contiguous() && b.contiguous();
  visit_any(a.dtype, [&]<class From>(From) {
    visit_any(b.dtype, [&]<class To>(To) {
      for_spans(queue, b.rows, b.cols, flat, [&](index_t r, index_t c, index_t n) {
        add_span(cpu::row_of<From>(a, r) + c, cpu::row_of<To>(b, r) + c, n);
      });
    });
  });
}

void CpuOps::scale(Queue& queue, TensorView x, double factor) {
  if (x.dtype == DType::f64) {
    for (index_t r = 0; r < x.rows; ++r)
      for (index_t c = 0; c < x.cols; ++c) cpu::row_of<double>(x, r)[c] *= factor;
    return;
  }
  cpu::visit_activation(x.dtype, [&]<class T>(T) {
    for_spans(queue, x.rows, x.cols, x.contiguous(), [&](index_t r, index_t c, index_t n) {
      cpu::kernels_for<T>().scale(cpu::row_of<T>(x, r) + c, static_cast<float>(factor), n);
    });
  });
}

void CpuOps::dropout(Queue& queue, const DropoutArgs& args) {
  const TensorView& x = args.x;
  const auto threshold = static_cast<std::uint32_t>(std::ceil(args.p * 0x1p24));
  cpu::visit_activation(x.dtype, [&]<class T>(T) {
    for_spans(queue, x.rows, x.cols, false, [&](index_t r, index_t c, index_t n) {
      const index_t index = (args.row0 + r) * args.global_cols + args.col0 + c;
      cpu::kernels_for<T>().dropout(
          cpu::row_of<T>(x, r) + c, n,
          {args.key.seed, args.key.stream, index, threshold, 1.0 / (1.0 - args.p)});
    });
  });
}

template <class Fn>
double CpuOps::sum_of_chunks(Queue& queue, index_t n, const Fn& chunk_sum) const {
  const index_t chunks = (n + kSumChunk - 1) / kSumChunk;
  std::vector<double> parts(static_cast<std::size_t>(chunks));
  for_rows(queue, chunks, kSumChunk * index_t{4}, [&](index_t first, index_t last) {
    for (index_t b = first; b < last; ++b) {
      const index_t from = b * kSumChunk;
      parts[static_cast<std::size_t>(b)] = chunk_sum(from, std::min(kSumChunk, n - from));
    }
  });
  double total = 0;
  for (const double part : parts) total += part;
  return total;
}

void CpuOps::sum_squares(Queue& queue, ConstTensorView x, TensorView result) {
  cpu::visit_activation(x.dtype, [&]<class T>(T) {
    const T* data = x.as<T>();
    *result.as<double>() += sum_of_chunks(queue, x.count(), [&](index_t from, index_t n) {
      return cpu::update_kernels_for<T>().sum_squares(data + from, n);
    });
  });
}

void CpuOps::sum(Queue& queue, ConstTensorView x, TensorView result) {
  cpu::visit_activation(x.dtype, [&]<class T>(T) {
    const T* data = x.as<T>();
    *result.as<double>() += sum_of_chunks(queue, x.count(), [&](index_t from, index_t n) {
      return cpu::kernels_for<T>().sum(data + from, n);
    });
  });
}

}  // namespace t3d
