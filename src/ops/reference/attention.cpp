// Attention one query row at a time: scores, softmax, weighted sum; and its derivative.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/reference/matrix.hpp"
#include "ops/reference/reference_ops.hpp"

namespace t3d {
using reference::Matrix;

namespace {

// Where one (sequence, query head) lies inside qkv and out.
struct Head {
  index_t row0, q, k, v;  // first row; first columns
  index_t index;          // query head number
};

template <class Fn>
void for_each_head(const AttentionArgs& args, Fn&& fn) {
  if (args.heads == 0) return;
  const index_t group = args.heads / args.kv_heads;
  const index_t size = args.head_size;
  for (index_t s = 0; s < args.sequences; ++s)
    for (index_t h = 0; h < args.heads; ++h)
      fn(Head{s * args.length, h * size, (args.heads + h / group) * size,
              (args.heads + args.kv_heads + h / group) * size, h});
}

double dot(const double* a, const double* b, index_t n) {
  double sum = 0;
  for (index_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void axpy(double factor, const double* x, double* y, index_t n) {
  for (index_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

}  // namespace

void ReferenceOps::attention_forward(Queue&, const AttentionArgs& args, TensorView out,
                                     TensorView lse) {
  const Matrix qkv = reference::read(args.qkv);
  Matrix o(out.rows, out.cols), l(lse.rows, lse.cols);
  const double scale = 1.0 / std::sqrt(static_cast<double>(args.head_size));
  for_each_head(args, [&](const Head& head) {
    for (index_t t = 0; t < args.length; ++t) {
      const index_t keys = args.causal ? t + 1 : args.length;
      std::vector<double> scores(static_cast<std::size_t>(keys));
      for (index_t u = 0; u < keys; ++u)
        scores[static_cast<std::size_t>(u)] =
            scale *
            dot(qkv.row(head.row0 + t) + head.q, qkv.row(head.row0 + u) + head.k, args.head_size);
      const double max = *std::max_element(scores.begin(), scores.end());
      double total = 0;
      for (const double s : scores) total += std::exp(s - max);
      l(head.row0 + t, head.index) = max + std::log(total);
      for (index_t u = 0; u < keys; ++u)
        axpy(std::exp(scores[static_cast<std::size_t>(u)] - max) / total,
             qkv.row(head.row0 + u) + head.v, o.row(head.row0 + t) + head.q, args.head_size);
    }
  });
  reference::write(o, out);
  reference::write(l, lse);
}

void ReferenceOps::attention_backward(Queue&, const AttentionArgs& args, ConstTensorView out,
                                      ConstTensorView lse, ConstTensorView dout, TensorView dqkv) {
  const Matrix qkv = reference::read(args.qkv), o = reference::read(out);
  const Matrix l = reference::read(lse), d_o = reference::read(dout);
  Matrix grad(dqkv.rows, dqkv.cols);
  const double scale = 1.0 / std::sqrt(static_cast<double>(args.head_size));
  const index_t size = args.head_size;
  for_each_head(args, [&](const Head& head) {
    for (index_t t = 0; t < args.length; ++t) {
      const index_t row = head.row0 + t;
      const double* q = qkv.row(row) + head.q;
      const double* d_row = d_o.row(row) + head.q;
      const double delta = dot(d_row, o.row(row) + head.q, size);
      for (index_t u = 0; u < (args.causal ? t + 1 : args.length); ++u) {
        const index_t key = head.row0 + u;
        const double p = std::exp(scale * dot(q, qkv.row(key) + head.k, size) - l(row, head.index));
        const double ds = p * (dot(d_row, qkv.row(key) + head.v, size) - delta) * scale;
        axpy(p, d_row, grad.row(key) + head.v, size);
        axpy(ds, q, grad.row(key) + head.k, size);
        axpy(ds, qkv.row(key) + head.k, grad.row(row) + head.q, size);
      }
    }
  });
  reference::write(grad, dqkv);
}

void ReferenceOps::kept_attention(Queue&, const KeptAttentionArgs& args, TensorView out) {
  const Matrix q = reference::read(args.queries), keys = reference::read(args.keys);
  const Matrix values = reference::read(args.values);
  Matrix o(out.rows, out.cols);
  const index_t size = args.head_size;
  for (index_t t = 0; t < o.rows(); ++t) {
    const index_t place = args.places.as<std::int32_t>()[t];
    if (place < 0) continue;
    const index_t first = place / args.capacity * args.capacity;
    for (index_t h = 0; h < args.heads; ++h) {
      const index_t kv = h / (args.heads / args.kv_heads) * size;
      std::vector<double> scores;
      for (index_t u = first; u <= place; ++u)
        scores.push_back(dot(q.row(t) + h * size, keys.row(u) + kv, size) /
                         std::sqrt(static_cast<double>(size)));
      const double max = *std::max_element(scores.begin(), scores.end());
      double total = 0;
      for (const double s : scores) total += std::exp(s - max);
      for (index_t u = first; u <= place; ++u)
        axpy(std::exp(scores[static_cast<std::size_t>(u - first)] - max) / total,
             values.row(u) + kv, o.row(t) + h * size, size);
    }
  }
  reference::write(o, out);
}

void ReferenceOps::rope(Queue&, const RopeArgs& args) {
  Matrix x = reference::read(args.heads);
  const auto* positions = args.positions.as<std::int32_t>();
  const index_t half = args.head_size / 2;
  for (index_t r = 0; r < x.rows(); ++r)
    for (index_t d = 0; d < half; ++d) {
      const auto pair = static_cast<double>(d);
      const double plain = std::exp2(pair * args.frequencies.log2_step);
      const index_t position = positions != nullptr ? positions[r] : r % args.length;
      const double turn = static_cast<double>(position) * args.frequencies.scaled(plain, pair);
      const double amplitude = args.frequencies.amplitude;
      const double c = amplitude * std::cos(turn);
      const double s = amplitude * (args.inverse ? -std::sin(turn) : std::sin(turn));
      for (index_t first = 0; first < x.cols(); first += args.head_size) {
        const double a = x(r, first + d), b = x(r, first + d + half);
        x(r, first + d) = a * c - b * s;
        x(r, first + d + half) = a * s + b * c;
      }
    }
  reference::write(x, args.heads);
}

}  // namespace t3d
