#include "digits.hpp"

#include <cmath>

namespace t3d::bench {
namespace {

constexpr index_t kGlyphRows = 7, kGlyphColumns = 5;
constexpr std::array<std::array<std::uint8_t, kGlyphRows>, Digits::kClasses> kGlyphs{{
    {0x0E, 0x11, 0x13, 0x15, 0x19, 0x11, 0x0E},
    {0x04, 0x0C, 0x04, 0x04, 0x04, 0x04, 0x0E},
    {0x0E, 0x11, 0x01, 0x02, 0x04, 0x08, 0x1F},
    {0x1F, 0x02, 0x04, 0x02, 0x01, 0x11, 0x0E},
    {0x02, 0x06, 0x0A, 0x12, 0x1F, 0x02, 0x02},
    {0x1F, 0x10, 0x1E, 0x01, 0x01, 0x11, 0x0E},
    {0x06, 0x08, 0x10, 0x1E, 0x11, 0x11, 0x0E},
    {0x1F, 0x01, 0x02, 0x04, 0x08, 0x08, 0x08},
    {0x0E, 0x11, 0x11, 0x0E, 0x11, 0x11, 0x0E},
    {0x0E, 0x11, 0x11, 0x0F, 0x01, 0x02, 0x0C},
}};

/// Adds a glyph to an image, its upper left corner at (top, left).
void add_glyph(float* image, index_t glyph, index_t top, index_t left, float brightness) {
  for (index_t r = 0; r < kGlyphRows; ++r)
    for (index_t c = 0; c < kGlyphColumns; ++c)
      if ((kGlyphs[static_cast<std::size_t>(glyph)][static_cast<std::size_t>(r)] >>
               (kGlyphColumns - 1 - c) &
           1) != 0)
        image[(top + r) * Digits::kSide + left + c] += brightness;
}

/// A tensor of the model within one row of all parameters (or of their gradients).
TensorView part(TensorView row, std::size_t group, index_t rows) {
  const index_t begin = DigitsModel::kOffsets[group];
  const index_t count = DigitsModel::kOffsets[group + 1] - begin;
  return row.col_range(begin, count).reshaped(rows, count / rows);
}
TensorView weight1(TensorView row) { return part(row, 0, DigitsModel::kHidden); }
TensorView bias1(TensorView row) { return part(row, 1, 1); }
TensorView weight2(TensorView row) { return part(row, 2, Digits::kClasses); }
TensorView bias2(TensorView row) { return part(row, 3, 1); }

}  // namespace

Digits::Digits(const Machine& machine, index_t rows)
    : images(machine.device, DType::f32, rows, kPixels, MemoryKind::activations),
      labels(machine.device, DType::i32, 1, rows, MemoryKind::activations) {}

void Digits::draw(const Machine& machine, const RandomKey& key, index_t first) {
  constexpr double kNoise = 0.3;
  constexpr float kOffset = -0.2F;
  constexpr index_t kDraws = 4;
  machine.ops.random_init(machine.queue, images, key, first, 0, kPixels, kNoise);
  const RandomKey shapes{key.seed, key.stream + 1};
  auto* pixels = images.view().as<float>();
  auto* label = labels.view().as<std::int32_t>();
  for (index_t row = 0; row < images.rows(); ++row, pixels += kPixels) {
    const auto draw_of = [&](index_t which, index_t choices) {
      const float u = random_uniform(shapes, (first + row) * kDraws + which);
      return static_cast<index_t>(u * static_cast<float>(choices));
    };
    label[row] = static_cast<std::int32_t>(draw_of(0, kClasses));
    const float u = random_uniform(shapes, (first + row) * kDraws + 3);
    for (index_t i = 0; i < kPixels; ++i) pixels[i] += kOffset;
    add_glyph(pixels, label[row], 1 + draw_of(1, 3), 2 + draw_of(2, 3), 0.6F + 0.8F * u);
  }
}

DigitsModel::DigitsModel(const Machine& machine, std::uint64_t seed)
    : machine_(machine),
      parameters_(machine.device, DType::f32, 1, kParameters, MemoryKind::weights) {
  Ops& ops = machine_.ops;
  ops.fill(machine_.queue, parameters_, 0);
  for (const TensorView w : {weight1(parameters_), weight2(parameters_)})
    ops.random_init(machine_.queue, w, {seed, stream_of("weights") + static_cast<unsigned>(w.rows)},
                    0, 0, w.cols, std::sqrt(2.0 / static_cast<double>(w.cols)));
}

DigitsModel::Forward DigitsModel::forward(const Digits& digits) {
  Ops& ops = machine_.ops;
  Queue& queue = machine_.queue;
  const index_t rows = digits.images.rows();
  const auto matrix = [&](index_t r, index_t c) {
    return Tensor(machine_.device, DType::f32, r, c, MemoryKind::activations);
  };
  Forward out{matrix(rows, kHidden), matrix(rows, Digits::kClasses), matrix(1, rows),
              matrix(1, rows)};
  ops.gemm(queue, {.a = digits.images,
                   .b = weight1(parameters_),
                   .c = out.hidden,
                   .transpose_b = true,
                   .bias = bias1(parameters_)});
  auto* hidden = out.hidden.view().as<float>();
  for (index_t i = 0; i < rows * kHidden; ++i) hidden[i] = hidden[i] < 0 ? 0 : hidden[i];
  ops.gemm(queue, {.a = out.hidden,
                   .b = weight2(parameters_),
                   .c = out.logits,
                   .transpose_b = true,
                   .bias = bias2(parameters_)});
  const Tensor stats = matrix(rows, 3);
  ops.xent_stats(queue, out.logits, digits.labels, 0, stats);
  ops.xent_merge(queue, stats, 1, digits.labels, out.lse, out.loss);
  return out;
}

double DigitsModel::loss(const Digits& digits) {
  const Forward pass = forward(digits);
  double sum = 0;
  machine_.ops.sum(machine_.queue, pass.loss, TensorView(&sum, DType::f64, 1, 1));
  return sum / static_cast<double>(digits.images.rows());
}

void DigitsModel::gradients(const Digits& digits, std::span<const index_t> batches,
                            TensorView gradients) {
  Ops& ops = machine_.ops;
  Queue& queue = machine_.queue;
  const Forward pass = forward(digits);
  const Tensor dhidden(machine_.device, DType::f32, digits.images.rows(), kHidden,
                       MemoryKind::activations);
  ops.fill(queue, gradients, 0);  // column_sums adds
  index_t first = 0;
  for (index_t i = 0; i < gradients.rows; ++i) {
    const index_t rows = batches[static_cast<std::size_t>(i)];
    const TensorView out = gradients.row_range(i, 1);
    const TensorView dlogits = pass.logits.view().row_range(first, rows);
    ops.xent_grad(queue, dlogits, digits.labels.view().col_range(first, rows), 0,
                  pass.lse.view().col_range(first, rows), 1.0 / static_cast<double>(rows));
    const TensorView hidden = pass.hidden.view().row_range(first, rows);
    const TensorView dh = dhidden.view().row_range(first, rows);
    ops.gemm(queue,
             {.a = dlogits, .b = hidden, .c = weight2(out), .transpose_a = true, .bias = {}});
    ops.column_sums(queue, dlogits, bias2(out));
    ops.gemm(queue, {.a = dlogits, .b = weight2(parameters_), .c = dh, .bias = {}});
    for (index_t x = 0; x < dh.count(); ++x)
      if (!(hidden.as<float>()[x] > 0)) dh.as<float>()[x] = 0;
    ops.gemm(queue, {.a = dh,
                     .b = digits.images.view().row_range(first, rows),
                     .c = weight1(out),
                     .transpose_a = true,
                     .bias = {}});
    ops.column_sums(queue, dh, bias1(out));
    first += rows;
  }
}

}  // namespace t3d::bench
