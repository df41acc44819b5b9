#include "forecast/calibrate/operator_shapes.hpp"

#include <algorithm>
#include <cmath>

#include "core/dtype.hpp"

namespace t3d {
namespace {

/// Of what a call may do at most: below this part of it, the call itself is all that counts.
constexpr double kLeastPart = 1.0 / 16384;
constexpr int kTries = 4096;

/// Point `number` of a sequence in [0, 1)^dimensions, of which every beginning is spread evenly.
std::array<double, 5> spread(int number, int dimensions) {
  // x^(d + 1) = x + 1; the fractions are those of multiples of 1/x, 1/x^2, ...
  double root = 1.5;
  for (int turn = 0; turn < 40; ++turn) root = std::pow(1 + root, 1.0 / (dimensions + 1));
  std::array<double, 5> point{};
  double step = 1;
  for (int at = 0; at < dimensions; ++at) {
    step /= root;
    point[static_cast<std::size_t>(at)] = std::fmod(0.5 + step * number, 1.0);
  }
  return point;
}

double between(double low, double high, double part) { return low * std::pow(high / low, part); }

/// As extents of models are: multiples.
double extent(double low, double high, double part) {
  const double wished = between(low, high, part);
  const double unit = wished < 64 ? 4 : wished < 512 ? 16 : 64;
  return unit * std::round(wished / unit);
}

template <std::size_t Count>
double one_of(const std::array<double, Count>& choices, double part) {
  return choices[std::min(Count - 1, static_cast<std::size_t>(part * Count))];
}

/// Rows, outputs and inputs of a linear; its three products.
std::vector<OperatorShape> linear_products(int number) {
  const auto point = spread(number, 3);
  const double rows = extent(16, 16384, point[0]), out = extent(16, 8192, point[1]),
               in = extent(16, 8192, point[2]);
  return {{rows, out, in, 0, 1}, {rows, in, out, 0, 0}, {out, in, rows, 1, 0}};
}

OperatorShape attention(int number) {
  const auto point = spread(number, 5);
  const double heads = std::round(between(1, 64, point[2]));
  const double groups = one_of(std::array{1.0, 1.0, 2.0, 4.0}, point[3]);
  const double kv_heads = std::fmod(heads, groups) == 0 ? heads / groups : heads;
  return {std::round(between(1, 32, point[0])), extent(32, 16384, point[1]), heads, kv_heads,
          one_of(std::array{16.0, 32.0, 64.0, 64.0, 128.0, 128.0, 256.0}, point[4])};
}

std::vector<OperatorShape> candidates(OperatorKind kind, int number) {
  switch (kind) {
    case OperatorKind::matmul: return linear_products(number);
    case OperatorKind::attention_forward:
    case OperatorKind::attention_backward: return {attention(number)};
    case OperatorKind::whole: {
      const auto point = spread(number, 2);
      return {{extent(16, 8192, point[0]), extent(16, 8192, point[1])}};
    }
    default: return {};
  }
}

/// By equal factors from the smallest to the largest. An optimizer's state is never in a cache: its
/// samples are no smaller than what fills one together.
std::vector<OperatorShape> stream_shapes(OperatorKind kind, std::size_t count,
                                         const ShapeLimits& most) {
  constexpr double kMost = 1 << 30, kUnit = 1024;
  const double least = kind == OperatorKind::optimizer ? 1 << 22 : 1 << 16;
  const double largest = std::clamp(std::min(most.work, most.bytes), 4 * least, kMost);
  std::vector<OperatorShape> shapes;
  for (std::size_t at = 0; at < count; ++at) {
    const double part = count > 1 ? static_cast<double>(at) / static_cast<double>(count - 1) : 1;
    shapes.push_back({kUnit * std::round(between(least, largest, part) / kUnit)});
  }
  return shapes;
}

}  // namespace

OperatorShape first_shape(OperatorKind kind, int doublings) {
  const double times = std::ldexp(1.0, doublings);
  switch (kind) {
    case OperatorKind::matmul: return {128 * times, 128 * times, 128 * times, 0, 1};
    case OperatorKind::attention_forward:
    case OperatorKind::attention_backward: return {times, 128 * times, 2, 2, 64};
    case OperatorKind::whole: return {64 * times, 64 * times};
    default: return {65536 * times * times};
  }
}

double operand_bytes(OperatorKind kind, double size, const OperatorShape& shape) {
  switch (kind) {
    case OperatorKind::matmul:
      return size * (shape[0] * shape[1] + shape[0] * shape[2] + shape[1] * shape[2]);
    case OperatorKind::attention_forward:
    case OperatorKind::attention_backward:
      return size * shape[0] * shape[1] * shape[4] * 4 * (shape[2] + shape[3]);
    case OperatorKind::whole: return 4 * size * shape[0] * shape[1];
    case OperatorKind::embedding:
      return shape[0] + static_cast<double>(kCalibratedVocab * kCalibratedWidth) * (size + 4);
    default: return shape[0];
  }
}

std::vector<OperatorShape> operator_shapes(OperatorKind kind, std::size_t count,
                                           const ShapeLimits& most) {
  const TableForm form = form_of(kind);
  if (form.columns.size() == 1) return stream_shapes(kind, count, most);
  std::vector<OperatorShape> shapes;
  for (int number = 0; number < kTries && shapes.size() < count; ++number)
    for (const OperatorShape& shape : candidates(kind, number)) {
      const double work = term_counts(kind, std::span(shape).first(form.columns.size()))[1];
      if (work > most.work || work < kLeastPart * most.work || shapes.size() == count) continue;
      if (operand_bytes(kind, size_of(DType::f32), shape) > most.bytes) continue;
      if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
    }
  if (shapes.empty()) shapes.push_back(first_shape(kind));
  return shapes;
}

}  // namespace t3d
