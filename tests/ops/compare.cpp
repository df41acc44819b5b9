// Every verb of the cpu back end against the reference: fp32 and bf16, odd, empty, strided and
// large shapes, one and several threads.
#include <fmt/format.h>

#include <cmath>

#include "ops/op_case.hpp"
#include "support/catch.hpp"

namespace t3d::ops_test {
namespace {

constexpr DType kDTypes[] = {DType::f32, DType::bf16};

/// The worst error of one buffer in units of what is allowed (1 and less passes).
double worst_ratio(const Buffer& result, const Buffer& expected) {
  const BufferSpec& spec = result.spec();
  double worst = 0;
  for (index_t r = 0; r < spec.rows; ++r)
    for (index_t c = 0; c < spec.cols; ++c) {
      const double want = expected.at(r, c), got = result.at(r, c);
      if (want == got) continue;
      const double allowed = spec.bound + rounding_of(spec.dtype) * std::abs(want);
      const double ratio = std::abs(want - got) / allowed;
      worst = std::isnan(ratio) ? HUGE_VAL : std::max(worst, ratio);
    }
  return worst;
}

void check_case(const OpCase& op, index_t pad, int threads) {
  INFO(op.name << ", pad " << pad << ", threads " << threads);
  const auto reference = make_reference_ops(), cpu = make_cpu_ops(threads);
  Queue queue;
  auto expected = op.make_buffers(pad), result = op.make_buffers(pad);
  op.call(*reference, queue, expected);
  op.call(*cpu, queue, result);
  for (std::size_t i = 0; i < result.size(); ++i) {
    INFO("buffer " << i);
    CHECK(result[i].gaps_intact());
    if (result[i].spec().role == Role::in)
      CHECK(result[i].same_bytes(expected[i]));
    else
      CHECK(worst_ratio(result[i], expected[i]) <= 1.0);
  }
}

void check_all(const OpCase& op) {
  check_case(op, 0, 1);
  check_case(op, 3, 2);
}

}  // namespace

TEST_CASE("gemm equals the reference") {
  const index_t shapes[][3] = {{1, 1, 1},    {3, 5, 7},   {17, 33, 65}, {64, 48, 96},
                               {0, 5, 4},    {5, 0, 4},   {6, 5, 0},    {1, 130, 19},
                               {130, 1, 19}, {700, 9, 5}, {9, 1300, 5}};
  for (const auto& [m, n, k] : shapes)
    for (int flags = 0; flags < 16; ++flags) {
      const GemmShape shape{
          m, n, k, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0, (flags & 8) != 0};
      check_all(gemm_case(shape, DType::f32, DType::f32));
      check_all(gemm_case(shape, DType::bf16, DType::bf16));
      check_all(gemm_case(shape, DType::bf16, DType::f32));
    }
}

TEST_CASE("large gemm in the three forms of training equals the reference") {
  for (const DType dtype : kDTypes) {
    check_all(gemm_case({256, 1100, 384, false, true, false, true}, dtype, dtype));
    check_all(gemm_case({1100, 384, 256, false, false}, dtype, dtype));
    check_all(gemm_case({1100, 384, 256, true, false, true}, dtype, DType::f32));
    // Long enough to be cut into slices, by columns and by rows.
    check_all(gemm_case({1000, 1100, 400, false, true, false, true}, dtype, dtype));
    check_all(gemm_case({1100, 900, 450, true, false, true, true}, dtype, DType::f32));
  }
}

TEST_CASE("attention equals the reference") {
  const AttentionShape shapes[] = {
      {1, 1, 1, 1, 4},    {2, 7, 3, 3, 5},    {1, 64, 2, 2, 64},       {2, 65, 2, 1, 16},
      {1, 200, 4, 2, 24}, {1, 130, 6, 2, 80}, {3, 33, 2, 2, 8, false}, {1, 129, 4, 1, 20, false},
      {0, 16, 2, 2, 8},   {2, 0, 2, 2, 8},    {2, 16, 0, 0, 8},        {1, 300, 2, 2, 128}};
  for (const auto& shape : shapes)
    for (const DType dtype : kDTypes) {
      check_all(attention_forward_case(shape, dtype));
      check_all(attention_backward_case(shape, dtype));
    }
}

TEST_CASE("rope equals the reference") {
  for (const DType dtype : kDTypes)
    for (const bool inverse : {false, true}) {
      check_all(rope_case(30, 10, 3, 8, inverse, dtype));
      check_all(rope_case(65, 64, 2, 80, inverse, dtype));
      check_all(rope_case(5, 9, 1, 2, inverse, dtype));
      check_all(rope_case(0, 4, 2, 8, inverse, dtype));
      check_all(rope_case(4, 4, 0, 8, inverse, dtype));
    }
}

TEST_CASE("norms equal the reference") {
  const index_t shapes[][2] = {{1, 1}, {3, 7}, {130, 65}, {70, 768}, {0, 5}, {513, 33}};
  for (const auto& [rows, cols] : shapes)
    for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
      for (const DType dtype : kDTypes) {
        if (cols > 1) check_all(norm_forward_case(kind, rows, cols, dtype));
        check_all(norm_backward_case(kind, rows, cols, false, dtype));
        check_all(norm_backward_case(kind, rows, cols, true, dtype));
      }
      check_all(norm_merge_case(kind, rows, 1));
      check_all(norm_merge_case(kind, rows, 5));
    }
  check_all(norm_backward_case(NormKind::layer, 4, 0, false, DType::f32));
}

TEST_CASE("activations equal the reference") {
  const index_t shapes[][2] = {{1, 1}, {3, 7}, {33, 65}, {5, 5000}, {0, 5}, {5, 0}};
  for (const auto& [rows, cols] : shapes)
    for (const Activation kind : {Activation::gelu_tanh, Activation::swiglu})
      for (const DType dtype : kDTypes) {
        check_all(activation_forward_case(kind, rows, cols, dtype));
        check_all(activation_backward_case(kind, rows, cols, dtype));
      }
}

TEST_CASE("embedding equals the reference") {
  const index_t shapes[][3] = {{1, 1, 1}, {50, 7, 5}, {100, 300, 40},
                               {0, 4, 3}, {7, 0, 3},  {9, 4, 0}};
  for (const auto& [rows, cols, table] : shapes)
    for (const DType dtype : kDTypes) {
      check_all(embed_case(rows, cols, table, dtype));
      check_all(scatter_case(rows, cols, table, dtype));
      check_all(positions_case(rows, cols, 8, 0, dtype));
      check_all(positions_case(rows, cols, 11, 27, dtype));
    }
}

TEST_CASE("cross-entropy equals the reference") {
  const index_t shapes[][2] = {{1, 1}, {3, 7}, {40, 65}, {9, 5000}, {4, 0}, {0, 5}};
  for (const auto& [rows, cols] : shapes) {
    for (const DType dtype : kDTypes)
      for (const index_t col0 : {index_t{0}, index_t{3}}) {
        check_all(xent_stats_case(rows, cols, col0, dtype));
        check_all(xent_grad_case(rows, cols, col0, dtype));
      }
    check_all(xent_merge_case(rows, 1));
    check_all(xent_merge_case(rows, 4));
  }
}

TEST_CASE("element-by-element verbs equal the reference") {
  const index_t shapes[][2] = {{1, 1}, {3, 7}, {130, 65}, {3, 9000}, {0, 5}, {5, 0}};
  const DType floats[] = {DType::f32, DType::bf16, DType::f64};
  for (const auto& [rows, cols] : shapes)
    for (const DType dtype : floats) {
      for (const DType to : floats) {
        check_all(copy_case(rows, cols, dtype, to));
        check_all(add_case(rows, cols, dtype, to));
      }
      check_all(fill_case(rows, cols, dtype));
      check_all(scale_case(rows, cols, dtype));
      if (dtype == DType::f64) continue;
      check_all(column_sums_case(rows, cols, dtype));
      check_all(dropout_case(rows, cols, 0.0, dtype));
      check_all(dropout_case(rows, cols, 0.3, dtype));
      check_all(random_init_case(rows, cols, dtype));
    }
}

TEST_CASE("sums and optimizers equal the reference") {
  for (const index_t count : {0, 1, 7, 1000, 200000})
    for (const DType dtype : kDTypes) {
      check_all(sum_case(count, false, dtype));
      check_all(sum_case(count, true, dtype));
      check_all(adamw_case(count, dtype));
      check_all(sgd_case(count, false, dtype));
      check_all(sgd_case(count, true, dtype));
    }
}

}  // namespace t3d::ops_test
