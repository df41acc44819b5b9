#include "ops/case_list.hpp"

#include <algorithm>
#include <cmath>

namespace t3d::ops_test {

double worst_ratio(const Buffer& result, const Buffer& expected) {
  const BufferSpec& spec = result.spec();
  double worst = 0;
  for (index_t r = 0; r < spec.rows; ++r)
    for (index_t c = 0; c < spec.cols; ++c) {
      const double want = expected.at(r, c), got = result.at(r, c);
      if (want == got) continue;
      const double least = spec.dtype == DType::f16 ? 0x1p-24 : 0;  // subnormals are common
      const double allowed = spec.bound + rounding_of(spec.dtype) * std::abs(want) + least;
      const double ratio = std::abs(want - got) / allowed;
      worst = std::isnan(ratio) ? HUGE_VAL : std::max(worst, ratio);
    }
  return worst;
}

void each_gemm_case(DTypes dtypes, const CaseFn& fn) {
  const index_t shapes[][3] = {{1, 1, 1},    {3, 5, 7},   {17, 33, 65}, {64, 48, 96},
                               {0, 5, 4},    {5, 0, 4},   {6, 5, 0},    {1, 130, 19},
                               {130, 1, 19}, {700, 9, 5}, {9, 1300, 5}};
  for (const auto& [m, n, k] : shapes)
    for (int flags = 0; flags < 16; ++flags) {
      const GemmShape shape{
          m, n, k, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0, (flags & 8) != 0};
      for (const DType dtype : dtypes) {
        fn(gemm_case(shape, dtype, dtype));
        if (dtype != DType::f32) fn(gemm_case(shape, dtype, DType::f32));
      }
    }
}

void each_large_gemm_case(DTypes dtypes, const CaseFn& fn) {
  for (const DType dtype : dtypes) {  // the three forms of training
    fn(gemm_case({256, 1100, 384, false, true, false, true}, dtype, dtype));
    fn(gemm_case({1100, 384, 256, false, false}, dtype, dtype));
    fn(gemm_case({1100, 384, 256, true, false, true}, dtype, DType::f32));
    // Long enough for the cpu to cut into slices, by columns and by rows.
    fn(gemm_case({1000, 1100, 400, false, true, false, true}, dtype, dtype));
    fn(gemm_case({1100, 900, 450, true, false, true, true}, dtype, DType::f32));
  }
}

void each_attention_case(DTypes dtypes, const CaseFn& fn) {
  const AttentionShape shapes[] = {
      {1, 1, 1, 1, 4},    {2, 7, 3, 3, 5},    {1, 64, 2, 2, 64},       {2, 65, 2, 1, 16},
      {1, 200, 4, 2, 24}, {1, 130, 6, 2, 80}, {3, 33, 2, 2, 8, false}, {1, 129, 4, 1, 20, false},
      {0, 16, 2, 2, 8},   {2, 0, 2, 2, 8},    {2, 16, 0, 0, 8},        {1, 300, 2, 2, 128}};
  for (const auto& shape : shapes)
    for (const DType dtype : dtypes) {
      fn(attention_forward_case(shape, dtype));
      fn(attention_backward_case(shape, dtype));
    }
}

void each_decoding_case(DTypes dtypes, const CaseFn& fn) {
  const index_t products[][3] = {{1, 1, 1}, {3, 5, 7}, {1, 130, 64}, {6, 33, 65},   {17, 48, 96},
                                 {0, 5, 4}, {5, 0, 4}, {2, 5, 0},    {4, 300, 3072}};
  const KeptShape kept[] = {{1, 1, 1, 1, 1, 4},   {5, 4, 7, 3, 3, 5},    {3, 3, 65, 2, 2, 64},
                            {9, 9, 33, 6, 2, 80}, {2, 2, 300, 4, 1, 20}, {2, 2, 9, 2, 2, 128},
                            {1, 1, 5, 1, 1, 250}, {0, 2, 8, 2, 2, 8},    {3, 2, 8, 0, 0, 8}};
  const index_t rows[][2] = {{1, 1}, {3, 7}, {30, 65}, {5, 4100}, {0, 5}, {5, 0}};
  for (const DType dtype : dtypes) {
    for (const auto& [m, n, k] : products)
      for (const bool more : {false, true}) {
        const GemmShape shape{m, n, k, false, true, more, more};
        fn(row_product_case(shape, dtype, dtype));
        if (dtype != DType::f32) fn(row_product_case(shape, dtype, DType::f32));
      }
    for (const KeptShape& shape : kept) fn(kept_attention_case(shape, dtype));
    for (const auto& [heads, size] : {std::pair{3, 8}, std::pair{2, 80}, std::pair{1, 2}})
      for (const index_t count : {0, 1, 37}) fn(rope_positions_case(count, heads, size, dtype));
    for (const auto& [count, cols] : rows)
      for (const DType to : {dtype, DType::f32}) fn(put_rows_case(count, cols, dtype, to));
  }
}

void each_rope_case(DTypes dtypes, const CaseFn& fn) {
  for (const DType dtype : dtypes)
    for (const bool inverse : {false, true}) {
      fn(rope_case(30, 10, 3, 8, inverse, dtype));
      fn(rope_case(65, 64, 2, 80, inverse, dtype));
      fn(rope_case(5, 9, 1, 2, inverse, dtype));
      for (const RopeScaling scaling :
           {RopeScaling::linear, RopeScaling::llama3, RopeScaling::yarn})
        fn(rope_case(40, 20, 3, 64, inverse, dtype, scaling));
      fn(rope_case(0, 4, 2, 8, inverse, dtype));
      fn(rope_case(4, 4, 0, 8, inverse, dtype));
    }
}

void each_norm_case(DTypes dtypes, const CaseFn& fn) {
  const index_t shapes[][2] = {{1, 1},    {3, 7},    {130, 65},  {70, 768}, {0, 5},
                               {513, 33}, {2, 4100}, {3, 17000}, {40, 2048}};
  for (const auto& [rows, cols] : shapes)
    for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
      for (const DType dtype : dtypes) {
        if (cols > 1) fn(norm_forward_case(kind, rows, cols, dtype));
        if (cols > 1)
          for (const bool branch : {false, true})
            fn(norm_whole_case(kind, rows, cols, branch, dtype));
        fn(norm_backward_case(kind, rows, cols, false, dtype));
        fn(norm_backward_case(kind, rows, cols, true, dtype));
      }
      fn(norm_merge_case(kind, rows, 1));
      fn(norm_merge_case(kind, rows, 5));
    }
  fn(norm_backward_case(NormKind::layer, 4, 0, false, DType::f32));
}

void each_activation_case(DTypes dtypes, const CaseFn& fn) {
  const index_t shapes[][2] = {{1, 1}, {3, 7}, {33, 65}, {5, 5000}, {0, 5}, {5, 0}, {64, 128}};
  for (const auto& [rows, cols] : shapes)
    for (const Activation kind : {Activation::gelu_tanh, Activation::swiglu})
      for (const DType dtype : dtypes) {
        fn(activation_forward_case(kind, rows, cols, dtype));
        fn(activation_backward_case(kind, rows, cols, dtype));
      }
}

void each_embedding_case(DTypes dtypes, const CaseFn& fn) {
  const index_t shapes[][3] = {{1, 1, 1}, {50, 7, 5},      {100, 300, 40}, {0, 4, 3},    {7, 0, 3},
                               {9, 4, 0}, {300, 24, 1000}, {70, 9, 70000}, {20000, 8, 1}};
  for (const auto& [rows, cols, table] : shapes)
    for (const DType dtype : dtypes) {
      fn(embed_case(rows, cols, table, dtype));
      fn(scatter_case(rows, cols, table, dtype));
      fn(positions_case(rows, cols, 8, 0, dtype));
      fn(positions_case(rows, cols, 11, 27, dtype));
    }
}

void each_xent_case(DTypes dtypes, const CaseFn& fn) {
  const index_t shapes[][2] = {{1, 1}, {3, 7}, {40, 65}, {9, 5000}, {4, 0}, {0, 5}, {3, 50304}};
  for (const auto& [rows, cols] : shapes) {
    for (const DType dtype : dtypes)
      for (const index_t col0 : {index_t{0}, index_t{3}}) {
        fn(xent_stats_case(rows, cols, col0, dtype));
        fn(xent_grad_case(rows, cols, col0, dtype));
      }
    fn(xent_merge_case(rows, 1));
    fn(xent_merge_case(rows, 4));
  }
}

void each_elementwise_case(DTypes dtypes, const CaseFn& fn) {
  const index_t shapes[][2] = {{1, 1}, {3, 7}, {130, 65}, {3, 9000}, {0, 5}, {5, 0}, {40, 128}};
  std::vector<DType> floats(dtypes.begin(), dtypes.end());
  floats.push_back(DType::f64);
  for (const auto& [rows, cols] : shapes)
    for (const DType dtype : floats) {
      for (const DType to : floats) {
        fn(copy_case(rows, cols, dtype, to));
        fn(add_case(rows, cols, dtype, to));
      }
      fn(fill_case(rows, cols, dtype));
      fn(scale_case(rows, cols, dtype));
    }
}

void each_random_case(DTypes dtypes, const CaseFn& fn) {
  const index_t shapes[][2] = {{1, 1}, {3, 7}, {130, 65}, {3, 9000}, {0, 5}, {5, 0}, {40, 128}};
  for (const auto& [rows, cols] : shapes)
    for (const DType dtype : dtypes) {
      for (const double p : {0.0, 0.3, 0.9}) fn(dropout_case(rows, cols, p, dtype));
      fn(random_init_case(rows, cols, dtype));
    }
}

void each_sum_case(DTypes dtypes, const CaseFn& fn) {
  const index_t shapes[][2] = {{1, 1}, {3, 7}, {130, 65}, {3, 9000}, {0, 5}, {5, 0}, {3000, 40}};
  for (const DType dtype : dtypes) {
    for (const index_t count : {0, 1, 7, 1000, 200000}) {
      fn(sum_case(count, false, dtype));
      fn(sum_case(count, true, dtype));
    }
    for (const auto& [rows, cols] : shapes) fn(column_sums_case(rows, cols, dtype));
  }
}

void each_optimizer_case(DTypes dtypes, const CaseFn& fn) {
  for (const index_t count : {0, 1, 7, 1000, 200000})
    for (const DType dtype : dtypes) {
      for (const bool on_device : {false, true}) {
        const DeviceNumbers device{on_device, on_device};
        fn(adamw_case(count, dtype, device));
        fn(sgd_case(count, false, dtype, device));
        fn(sgd_case(count, true, dtype, device));
      }
      fn(adam_direction_case(count, dtype, false));
      if (dtype == DType::f32) fn(adam_direction_case(count, dtype, true));
    }
  for (const bool lr : {false, true}) {
    fn(adamw_case(7, DType::f32, {!lr, lr}));
    fn(sgd_case(7, false, DType::f32, {!lr, lr}));
  }
  for (const double squares : {0.0, 0.25, 1.0, 1e10, HUGE_VAL})
    for (const double clip_norm : {0.0, 0.5, 1.0}) fn(clip_factor_case(squares, clip_norm));
}

}  // namespace t3d::ops_test
