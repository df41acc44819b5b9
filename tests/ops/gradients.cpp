// The reference's backward verbs are derivatives of its forward verbs: directional derivatives in
// fp64 by five-point differences, relative error at most 1e-6.
#include <cmath>

#include "ops/op_case.hpp"
#include "support/catch.hpp"

namespace t3d::ops_test {
namespace {

Buffer normal(index_t rows, index_t cols, std::uint64_t stream, double spread = 1) {
  return {{DType::f64, rows, cols, Role::in, Content::normal, spread}, 0, stream};
}
Buffer zeros(index_t rows, index_t cols) { return normal(rows, cols, 0, 0.0); }

double dot(const Buffer& a, const Buffer& b) {
  double sum = 0;
  for (index_t r = 0; r < a.spec().rows; ++r)
    for (index_t c = 0; c < a.spec().cols; ++c) sum += a.at(r, c) * b.at(r, c);
  return sum;
}

/// d/dh loss(x + h direction) at h = 0.
template <class Loss>
double slope(Buffer& x, const Buffer& direction, const Loss& loss) {
  const Buffer origin = x;
  const double h = 1e-3;
  const auto at = [&](double step) {
    for (index_t r = 0; r < x.spec().rows; ++r)
      for (index_t c = 0; c < x.spec().cols; ++c)
        x.set(r, c, origin.at(r, c) + step * direction.at(r, c));
    const double value = loss();
    x = origin;
    return value;
  };
  return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
}

template <class Loss>
void check_gradient(const char* name, Buffer& x, const Buffer& gradient, const Loss& loss) {
  for (const std::uint64_t stream : {101U, 102U, 103U}) {
    INFO(name << ", direction " << stream);
    const Buffer direction = normal(x.spec().rows, x.spec().cols, stream);
    const double expected = slope(x, direction, loss), got = dot(gradient, direction);
    CHECK(std::abs(got - expected) <= 1e-6 * std::max(std::abs(expected), 1e-3));
  }
}

}  // namespace

TEST_CASE("attention backward is the derivative of attention forward") {
  const auto ops = make_reference_ops();
  Queue queue;
  const AttentionShape shapes[] = {
      {2, 5, 4, 2, 6, true}, {1, 7, 2, 2, 4, false}, {1, 6, 3, 1, 2, true}};
  for (const AttentionShape& s : shapes) {
    const index_t rows = s.sequences * s.length, width = (s.heads + 2 * s.kv_heads) * s.head_size;
    Buffer qkv = normal(rows, width, 1), out = zeros(rows, s.heads * s.head_size);
    Buffer lse = zeros(rows, s.heads), dqkv = normal(rows, width, 9);
    Buffer dout = normal(rows, s.heads * s.head_size, 2);
    const auto loss = [&] {
      const AttentionArgs args{qkv.view(), s.sequences, s.length, s.heads,
                               s.kv_heads, s.head_size, s.causal};
      ops->attention_forward(queue, args, out.view(), lse.view());
      return dot(out, dout);
    };
    loss();
    const AttentionArgs args{qkv.view(), s.sequences, s.length, s.heads,
                             s.kv_heads, s.head_size, s.causal};
    ops->attention_backward(queue, args, out.view(), lse.view(), dout.view(), dqkv.view());
    check_gradient("qkv", qkv, dqkv, loss);
  }
}

TEST_CASE("norm backward is the derivative of norm forward") {
  const auto ops = make_reference_ops();
  Queue queue;
  for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
    const index_t rows = 5, cols = 9, left = 4;  // two slices, as on two ranks
    Buffer x = normal(rows, cols, 1), gamma = normal(1, cols, 2), beta = normal(1, cols, 3);
    Buffer y = zeros(rows, cols), dy = normal(rows, cols, 4), stats = zeros(2 * rows, 3);
    Buffer moments = zeros(rows, 2), sums = zeros(rows, 2), dx = normal(rows, cols, 5);
    Buffer dgamma = zeros(1, cols), dbeta = zeros(1, cols);
    const auto loss = [&] {
      ops->norm_stats(queue, kind, x.view().col_range(0, left), stats.view().row_range(0, rows));
      ops->norm_stats(queue, kind, x.view().col_range(left, cols - left),
                      stats.view().row_range(rows, rows));
      ops->norm_merge(queue, kind, stats.view(), 2, 1e-5, moments.view());
      ops->norm_apply(queue, x.view(), moments.view(), gamma.view(), beta.view(), y.view());
      return dot(y, dy);
    };
    loss();
    ops->norm_backward_stats(queue, dy.view(), x.view(), moments.view(), gamma.view(), sums.view());
    ops->norm_backward_apply(queue, kind, dy.view(), x.view(), moments.view(), gamma.view(),
                             sums.view(), cols, false, dx.view(), dgamma.view(), dbeta.view());
    check_gradient("x", x, dx, loss);
    check_gradient("gamma", gamma, dgamma, loss);
    check_gradient("beta", beta, dbeta, loss);
  }
}

TEST_CASE("activation backward is the derivative of activation forward") {
  const auto ops = make_reference_ops();
  Queue queue;
  for (const Activation kind : {Activation::gelu_tanh, Activation::swiglu}) {
    const index_t rows = 4, cols = 6, width = kind == Activation::swiglu ? 2 * cols : cols;
    Buffer x = normal(rows, width, 1, 2.0), y = zeros(rows, cols), dy = normal(rows, cols, 2);
    Buffer dx = normal(rows, width, 3);
    const auto loss = [&] {
      ops->activation_forward(queue, kind, x.view(), y.view());
      return dot(y, dy);
    };
    ops->activation_backward(queue, kind, x.view(), dy.view(), dx.view());
    check_gradient("x", x, dx, loss);
  }
}

TEST_CASE("xent_grad is the derivative of the loss over two vocabulary slices") {
  const auto ops = make_reference_ops();
  Queue queue;
  const index_t rows = 5, cols = 11, left = 4;
  const std::int32_t labels[rows] = {0, 3, 4, -1, 10};
  const ConstTensorView targets(labels, DType::i32, 1, rows);
  Buffer logits = normal(rows, cols, 1, 2.0), stats = zeros(2 * rows, 3);
  Buffer lse = zeros(1, rows), loss_rows = zeros(1, rows);
  const auto loss = [&] {
    ops->xent_stats(queue, logits.view().col_range(0, left), targets, 0,
                    stats.view().row_range(0, rows));
    ops->xent_stats(queue, logits.view().col_range(left, cols - left), targets, left,
                    stats.view().row_range(rows, rows));
    ops->xent_merge(queue, stats.view(), 2, targets, lse.view(), loss_rows.view());
    double total = 0;
    for (index_t r = 0; r < rows; ++r) total += loss_rows.at(0, r);
    return total * 0.25;
  };
  loss();
  Buffer gradient = logits;
  ops->xent_grad(queue, gradient.view().col_range(0, left), targets, 0, lse.view(), 0.25);
  ops->xent_grad(queue, gradient.view().col_range(left, cols - left), targets, left, lse.view(),
                 0.25);
  check_gradient("logits", logits, gradient, loss);
}

TEST_CASE("rope turns back, keeps lengths and depends on distance only") {
  const auto ops = make_reference_ops();
  Queue queue;
  Buffer x = normal(12, 16, 1);
  const Buffer origin = x;
  ops->rope(queue, {x.view(), 6, 8, rope_frequencies({}, 8), false});
  for (index_t c = 0; c < 16; ++c) CHECK(x.at(6, c) == origin.at(6, c));  // position 0
  CHECK(dot(x, x) == Approx(dot(origin, origin)).epsilon(1e-12));
  ops->rope(queue, {x.view(), 6, 8, rope_frequencies({}, 8), true});
  for (index_t r = 0; r < 12; ++r)
    for (index_t c = 0; c < 16; ++c) CHECK(x.at(r, c) == Approx(origin.at(r, c)).margin(1e-13));

  Buffer same = zeros(6, 8);  // one vector at every position
  for (index_t r = 0; r < 6; ++r)
    for (index_t c = 0; c < 8; ++c) same.set(r, c, origin.at(0, c));
  ops->rope(queue, {same.view(), 6, 8, rope_frequencies({}, 8), false});
  const auto product = [&](index_t a, index_t b) {
    double sum = 0;
    for (index_t c = 0; c < 8; ++c) sum += same.at(a, c) * same.at(b, c);
    return sum;
  };
  CHECK(product(0, 2) == Approx(product(3, 5)).epsilon(1e-12));
}

}  // namespace t3d::ops_test
