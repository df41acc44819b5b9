// Normalisation by rows. Gradients of the weights are summed in fp32 over blocks of kBlockRows
// rows, then over the blocks in order.
#include <cmath>

#include "ops/cpu/cpu_ops.hpp"

namespace t3d {
namespace {

constexpr index_t kBlockRows = 64;
struct PartialSums;

}  // namespace

void CpuOps::norm_stats(Queue& queue, NormKind kind, ConstTensorView x, TensorView stats) {
  cpu::visit_activation(x.dtype, [&]<class T>(T) {
    for_rows(queue, x.rows, x.cols * size_of(x.dtype), [&](index_t first, index_t last) {
      for (index_t r = first; r < last; ++r)
        cpu::kernels_for<T>().norm_stats(cpu::row_of<T>(x, r), x.cols, kind == NormKind::layer,
                                         cpu::row_of<float>(stats, r));
    });
  });
}

void CpuOps::norm_merge(Queue& queue, NormKind kind, ConstTensorView stats, index_t parts,
                        double eps, TensorView moments) {
  const auto merge_row = [&](index_t r) {
    double count = 0, mean = 0, m2 = 0;
    for (index_t p = 0; p < parts; ++p) {
      const float* part = cpu::row_of<float>(stats, p * moments.rows + r);
      const auto n = static_cast<double>(part[0]);
      if (n == 0) continue;
      const double delta = kind == NormKind::layer ? static_cast<double>(part[1]) - mean : 0.0;
      m2 += static_cast<double>(part[2]) + delta * delta * count * n / (count + n);
      mean += delta * n / (count + n);
      count += n;
    }
    float* out = cpu::row_of<float>(moments, r);
    out[0] = static_cast<float>(mean);
    out[1] = count > 0 ? static_cast<float>(1.0 / std::sqrt(m2 / count + eps)) : 0.0F;
  };
  for_rows(queue, moments.rows, 64 * parts, [&](index_t first, index_t last) {
    for (index_t r = first; r < last; ++r) merge_row(r);
  });
}

void CpuOps::norm_apply(Queue& queue, ConstTensorView x, ConstTensorView moments,
                        ConstTensorView gamma, ConstTensorView beta, TensorView y) {
  cpu::visit_activation(x.dtype, [&]<class T>(T) {
    for_rows(queue, x.rows, 2 * x.cols * size_of(x.dtype), [&](index_t first, index_t last) {
      for (index_t r = first; r < last; ++r) {
        const float* m = cpu::row_of<float>(moments, r);
        cpu::kernels_for<T>().norm_apply(cpu::row_of<T>(x, r), m[0], m[1], gamma.as<float>(),
                                         beta.as<float>(), cpu::row_of<T>(y, r), x.cols);
      }
    });
  });
}

void CpuOps::norm_backward_stats(Queue& queue, ConstTensorView dy, ConstTensorView x,
                                 ConstTensorView moments, ConstTensorView gamma, TensorView sums) {
  cpu::visit_activation(x.dtype, [&]<class T>(T) {
    for_rows(queue, x.rows, 2 * x.cols * size_of(x.dtype), [&](index_t first, index_t last) {
      for (index_t r = first; r < last; ++r) {
        const float* m = cpu::row_of<float>(moments, r);
        cpu::kernels_for<T>().norm_backward_stats(cpu::row_of<T>(dy, r), cpu::row_of<T>(x, r), m[0],
                                                  m[1], gamma.as<float>(), x.cols,
                                                  cpu::row_of<float>(sums, r));
      }
    });
  });
}

void CpuOps::norm_backward_apply(Queue& queue, NormKind kind, ConstTensorView dy, ConstTensorView x,
                                 ConstTensorView moments, ConstTensorView gamma,
                                 ConstTensorView sums, index_t length, bool accumulate,
                                 TensorView dx, TensorView dgamma, TensorView dbeta) {
  if (x.empty()) return;
  const index_t blocks = (x.rows + kBlockRows - 1) / kBlockRows, cols = x.cols;
  float* dgamma_parts = cpu::scratch<PartialSums>(2 * blocks * cols);
  float* dbeta_parts = dgamma_parts + blocks * cols;
  const float per_column = 1.0F / static_cast<float>(length);
  cpu::visit_activation(x.dtype, [&]<class T>(T) {
    const auto row = [&](index_t r, float* dg, float* db) {
      const float* m = cpu::row_of<float>(moments, r);
      const float* s = cpu::row_of<float>(sums, r);
      const float centre = kind == NormKind::layer ? s[0] * per_column : 0.0F;
      cpu::kernels_for<T>().norm_backward_apply(
          cpu::row_of<T>(dy, r), cpu::row_of<T>(x, r), {m[0], m[1], centre, s[1] * per_column},
          gamma.as<float>(), cols, accumulate, cpu::row_of<T>(dx, r), dg, db);
    };
    const index_t bytes = 3 * cols * kBlockRows * size_of(x.dtype);
    for_rows(queue, blocks, bytes, [&](index_t first, index_t last) {
      for (index_t b = first; b < last; ++b) {
        float *dg = dgamma_parts + b * cols, *db = dbeta_parts + b * cols;
        std::fill_n(dg, cols, 0.0F);
        std::fill_n(db, cols, 0.0F);
        for (index_t r = b * kBlockRows; r < std::min(x.rows, (b + 1) * kBlockRows); ++r)
          row(r, dg, db);
      }
    });
  });
  if (dgamma.data != nullptr) add_partials(dgamma_parts, blocks, cols, dgamma.as<float>());
  if (dbeta.data != nullptr) add_partials(dbeta_parts, blocks, cols, dbeta.as<float>());
}

void CpuOps::column_sums(Queue& queue, ConstTensorView x, TensorView out) {
  if (x.empty()) return;
  const index_t blocks = (x.rows + kBlockRows - 1) / kBlockRows;
  float* parts = cpu::scratch<PartialSums>(blocks * x.cols);
  cpu::visit_activation(x.dtype, [&]<class T>(T) {
    for_rows(queue, blocks, x.cols * kBlockRows * size_of(x.dtype),
             [&](index_t first, index_t last) {
               for (index_t b = first; b < last; ++b) {
                 float* sums = parts + b * x.cols;
                 std::fill_n(sums, x.cols, 0.0F);
                 const index_t end = std::min(x.rows, (b + 1) * kBlockRows);
                 for (index_t r = b * kBlockRows; r < end; ++r)
                   cpu::kernels_for<T>().add_to_float(cpu::row_of<T>(x, r), sums, x.cols);
               }
             });
  });
  add_partials(parts, blocks, x.cols, out.as<float>());
}

}  // namespace t3d
