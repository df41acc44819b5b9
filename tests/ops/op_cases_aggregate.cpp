// Cases: what aggregates the gradients of replicas, and steps along directions.
#include <fmt/format.h>

#include <cmath>

#include "ops/adasum_tree.hpp"
#include "ops/op_case.hpp"

namespace t3d::ops_test {
namespace {

double as_double(index_t n) { return static_cast<double>(n); }

std::string text(Cut cut) { return cut == Cut::one ? "one segment" : "many segments"; }

constexpr index_t kGroups = 6;  // of cut segments; the last one stays empty

std::vector<Segment> segments_of(index_t count, Cut cut) {
  if (cut == Cut::one) return {{0, count, 0}};
  constexpr index_t kLengths[] = {1, 0, 70, 7, 513, 4099};
  std::vector<Segment> segments;
  index_t begin = 0;
  for (index_t k = 0; begin < count; ++k) {
    const index_t end = std::min(count, begin + kLengths[k % 6]);
    segments.push_back({begin, end, k * 2 % (kGroups - 1)});
    begin = end + (k % 3 == 0 ? 3 : 0);
  }
  return segments;
}

index_t groups_of(Cut cut) { return cut == Cut::one ? 1 : kGroups; }

BufferSpec numbers(index_t rows, index_t cols) {
  return {DType::f64, rows, cols, Role::in, Content::positive, 1};
}
BufferSpec result(index_t rows, index_t cols) {
  return {DType::f64, rows, cols, Role::out, Content::garbage, 1, 1e-11};
}

/// The Gram matrix of n vectors with a common part, of a size that differs between groups.
void set_gram(Buffer& gram, index_t n, index_t groups) {
  constexpr index_t kDimensions = 7;
  const RandomKey key{5, stream_of("gram")};
  for (index_t g = 0; g < groups; ++g) {
    const double size = std::exp2(as_double(g * 9 % 40 - 20));
    const auto at = [&](index_t i, index_t d) {
      return size * (0.3 + random_normal(key, (g * 64 + i) * kDimensions + d));
    };
    for (index_t i = 0; i < n; ++i)
      for (index_t j = i; j < n; ++j) {
        double dot = 0;
        for (index_t d = 0; d < kDimensions; ++d) dot += at(i, d) * at(j, d);
        gram.set(g, adasum::packed_at(i, j, n), dot);
      }
  }
}

std::string_view name_of(AggregateRule rule) {
  return rule == AggregateRule::mean ? "mean" : rule == AggregateRule::sum ? "sum" : "adasum";
}

}  // namespace

OpCase axpby_case(index_t rows, index_t cols, bool same, bool device) {
  OpCase op;
  op.name = fmt::format("axpby {}x{}{}{}", rows, cols, same ? ", x is y" : "",
                        device ? ", factors on device" : "");
  op.buffers = {{DType::f32, rows, cols},
                {DType::f32, rows, cols, Role::inout, Content::normal, 1, 8 * kEps32},
                numbers(1, 1),
                numbers(1, 1)};
  op.call = [=](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    Factor a{-0.7, {}}, factor_b{1.3, {}};
    if (device) a.device = b[2].view(), factor_b.device = b[3].view();
    ops.axpby(queue, a, b[same ? 1 : 0].view(), factor_b, b[1].view());
  };
  op.bytes = as_double(rows * cols * (same ? 8 : 12));
  return op;
}

OpCase norm_ratios_case(index_t count, bool gains) {
  OpCase op;
  op.name = fmt::format("norm ratios {}{}", count, gains ? " with gains" : "");
  op.buffers = {numbers(1, count), numbers(1, count), numbers(1, count), result(1, count)};
  op.prepare = [count](std::vector<Buffer>& b) {
    for (index_t c = 0; c < count; ++c) {
      if (c % 3 == 1) b[0].set(0, c, 0);
      if (c % 4 == 2) b[1].set(0, c, 0);
    }
  };
  op.call = [gains](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.norm_ratios(queue, b[0].view(), b[1].view(), gains ? b[2].view() : TensorView(),
                    b[3].view());
  };
  op.bytes = as_double(count * 32);
  return op;
}

OpCase gram_case(index_t n, index_t count, Cut cut, DType dtype) {
  OpCase op;
  op.name = fmt::format("gram {}x{} {} {}", n, count, t3d::name_of(dtype), text(cut));
  op.buffers = {{dtype, n, count},
                {DType::f64, groups_of(cut), adasum::packed_size(n), Role::inout, Content::normal,
                 1, 1e-12 * as_double(count + 1)}};
  op.call = [=](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.gram(queue, b[0].view(), segments_of(count, cut), b[1].view());
  };
  op.flops = as_double(adasum::packed_size(n) * count * 2);
  op.bytes = as_double(n * count * size_of(dtype));
  return op;
}

OpCase combine_case(index_t n, index_t count, Cut cut, DType from, DType to) {
  OpCase op;
  op.name = fmt::format("combine {}x{} {} to {} {}", n, count, t3d::name_of(from), t3d::name_of(to),
                        text(cut));
  op.buffers = {{from, n, count},
                {DType::f64, groups_of(cut), n},
                {to, 1, count, Role::inout, Content::normal, 1, 8 * kEps32 * as_double(n)}};
  op.prepare = [=](std::vector<Buffer>& b) {
    if (n < 2) return;
    b[1].set(groups_of(cut) / 2, 0, 0);
    for (index_t c = 0; c < count; ++c) b[0].set(1, c, c % 2 == 0 ? std::nan("") : HUGE_VAL);
    for (index_t g = 0; g < groups_of(cut); ++g) b[1].set(g, 1, 0);
  };
  op.call = [=](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.combine(queue, b[0].view(), segments_of(count, cut), b[1].view(), b[2].view());
  };
  op.flops = as_double(n * count * 2);
  op.bytes = as_double(count * (n * size_of(from) + size_of(to)));
  return op;
}

OpCase adasum_case(const AdasumShape& shape) {
  const index_t n = shape.n, groups = shape.groups;
  OpCase op;
  op.name =
      fmt::format("{} of {} in {} groups{}{}{}, gain^{}", name_of(shape.rule), n, groups,
                  shape.noise_leaf ? ", noise leaf" : "", shape.plain_leaf ? ", plain leaf" : "",
                  shape.noise ? "" : ", no noise", shape.gain_exponent);
  op.buffers = {numbers(groups, adasum::packed_size(n)),
                numbers(1, n),
                {DType::f64, groups, 2, Role::inout, Content::positive, 1, 1e-11},
                result(groups, n),
                result(1, groups),
                result(1, adasum_summary::columns + n)};
  op.prepare = [=](std::vector<Buffer>& b) {
    set_gram(b[0], n, groups);
    if (groups > 0) b[2].set(0, 0, 0), b[2].set(0, 1, 0);  // not known yet
    if (n > 2) b[1].set(0, 1, 0);
    if (n > 4 && groups > 0)
      b[0].set(groups - 1, adasum::packed_at(3, 3, n), n > 8 ? std::nan("") : HUGE_VAL);
  };
  op.call = [shape](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    AdasumArgs args;
    args.gram = b[0].view(), args.weights = b[1].view();
    args.unscale = 0.3;
    args.rule = shape.rule;
    args.noise_leaf = shape.noise_leaf, args.plain_leaf = shape.plain_leaf;
    args.noise_decay = 0.8;
    if (shape.noise) args.noise = b[2].view();
    args.gain_exponent = shape.gain_exponent;
    args.coefficients = b[3].view(), args.gains = b[4].view(), args.summary = b[5].view();
    ops.adasum(queue, args);
  };
  op.bytes = as_double(groups * (adasum::packed_size(n) + n + 3) * 8);
  return op;
}

OpCase flat_gains_case(index_t n, index_t groups, double gain_exponent) {
  OpCase op;
  op.name = fmt::format("flat gains of {} in {} groups, gain^{}", n, groups, gain_exponent);
  op.buffers = {numbers(1, groups), numbers(1, groups), numbers(1, n), result(1, groups),
                result(1, adasum_summary::columns + n)};
  op.prepare = [n](std::vector<Buffer>& b) {
    if (n > 2) b[2].set(0, 1, 0);
  };
  op.call = [gain_exponent](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    FlatGainArgs args;
    args.leaf_squares = b[0].view(), args.mean_squares = b[1].view(), args.weights = b[2].view();
    args.unscale = 0.3;
    args.gain_exponent = gain_exponent;
    args.gains = b[3].view(), args.summary = b[4].view();
    ops.flat_gains(queue, args);
  };
  op.bytes = as_double(groups * 24);
  return op;
}

namespace {

void each_step_case(const std::function<void(const OpCase&)>& fn) {
  const index_t shapes[][2] = {{1, 1}, {3, 7}, {1, 9001}, {0, 5}, {5, 0}, {40, 128}};
  for (const auto& [rows, cols] : shapes)
    for (const bool same : {false, true})
      for (const bool device : {false, true}) fn(axpby_case(rows, cols, same, device));
  for (const index_t count : {0, 1, 7, 300})
    for (const bool gains : {false, true}) fn(norm_ratios_case(count, gains));
}

void each_coefficient_case(const std::function<void(const OpCase&)>& fn) {
  for (const index_t n : {1, 2, 3, 8, 17, 64})
    for (const index_t groups : {0, 1, 5}) {
      for (const AggregateRule rule :
           {AggregateRule::mean, AggregateRule::sum, AggregateRule::adasum})
        for (const bool noise_leaf : {false, true})
          fn(adasum_case({n, groups, rule, noise_leaf, false, true, 0.5}));
      fn(adasum_case({n, groups, AggregateRule::adasum, true, true, false, 1}));
      fn(adasum_case({n, groups, AggregateRule::adasum, true, false, false, 0}));
      fn(adasum_case({n, groups, AggregateRule::adasum, true, false, true, 0.8}));
      for (const double exponent : {0.0, 0.5, 0.8, 1.0}) fn(flat_gains_case(n, groups, exponent));
    }
}

}  // namespace

void each_aggregate_case(std::span<const DType> dtypes,
                         const std::function<void(const OpCase&)>& fn) {
  each_step_case(fn);
  each_coefficient_case(fn);
  for (const index_t n : {1, 2, 3, 8, 17})
    for (const index_t count : {0, 1, 63, 1000, 9301})
      for (const Cut cut : {Cut::one, Cut::many})
        for (const DType dtype : dtypes) {
          fn(gram_case(n, count, cut, dtype));
          for (const DType to : dtypes) fn(combine_case(n, count, cut, dtype, to));
        }
}

}  // namespace t3d::ops_test
