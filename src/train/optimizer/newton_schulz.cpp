#include "train/optimizer/newton_schulz.hpp"

#include <algorithm>
#include <utility>

namespace t3d {
namespace {

constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;

// A factor of a product: the matrix itself, or its copy in bf16.
struct Operand {
  Operand(const Context& context, ConstTensorView x) : view(x) {
    if (!is_half(context.activation)) return;
    copy = context.make(DType::bf16, x.rows, x.cols, MemoryKind::workspace);
    context.ops.copy(context.queue, x, copy);
    view = copy;
  }
  Tensor copy;
  ConstTensorView view;
};

// x / |x|_F without the host's help: sqrt(1 / |x|^2), or 1 where that is no number.
void normalise(const Context& context, TensorView x) {
  const Tensor numbers = context.make(DType::f64, 1, 3, MemoryKind::workspace);
  const TensorView one = numbers.view().col_range(0, 1), squares = numbers.view().col_range(1, 1),
                   inverse = numbers.view().col_range(2, 1);
  context.ops.fill(context.queue, one, 1);
  context.ops.fill(context.queue, squares, 0);
  context.ops.sum_squares(context.queue, x, squares);
  context.ops.norm_ratios(context.queue, one, squares, {}, inverse);
  context.ops.axpby(context.queue, {1, inverse}, x, {0, {}}, x);
}

void multiply(const Context& context, ConstTensorView a, bool transpose_a, ConstTensorView b,
              bool transpose_b, TensorView c) {
  GemmArgs args;
  args.a = a;
  args.b = b;
  args.c = c;
  args.transpose_a = transpose_a;
  args.transpose_b = transpose_b;
  context.ops.gemm(context.queue, args);
}

// next = a x + (b A + c A A) x; for a tall x the same of its transpose.
void iterate(const Context& context, TensorView x, TensorView next) {
  const bool tall = x.rows > x.cols;
  const index_t small = std::min(x.rows, x.cols);
  const Tensor square = context.make(x.dtype, small, small, MemoryKind::workspace);
  const Tensor polynomial = context.make(x.dtype, small, small, MemoryKind::workspace);
  const Operand factor(context, x);
  multiply(context, factor.view, tall, factor.view, !tall, square);
  {
    const Operand a(context, square);
    multiply(context, a.view, false, a.view, false, polynomial);
  }
  context.ops.axpby(context.queue, {kB, {}}, square, {kC, {}}, polynomial);
  const Operand p(context, polynomial);
  if (tall)
    multiply(context, factor.view, false, p.view, false, next);
  else
    multiply(context, p.view, false, factor.view, false, next);
  context.ops.axpby(context.queue, {kA, {}}, x, {}, next);
}

}  // namespace

void newton_schulz(const Context& context, TensorView x, index_t steps) {
  normalise(context, x);
  const Tensor other = context.make(x.dtype, x.rows, x.cols, MemoryKind::workspace);
  TensorView now = x, next = other;
  for (index_t step = 0; step < steps; ++step) {
    iterate(context, now, next);
    std::swap(now, next);
  }
  if (now.data != x.data) context.ops.copy(context.queue, now, x);
}

}  // namespace t3d
