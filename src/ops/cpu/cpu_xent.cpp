// Cross-entropy by rows. The merge is in fp64 with the language's own arithmetic, so that a NaN or
// an infinity in any part reaches the loss.
#include <cmath>
#include <limits>

#include "ops/cpu/cpu_ops.hpp"

namespace t3d {

void CpuOps::xent_stats(Queue& queue, ConstTensorView logits, ConstTensorView targets, index_t col0,
                        TensorView stats) {
  cpu::visit_activation(logits.dtype, [&]<class T>(T) {
    for_rows(queue, stats.rows, logits.cols * size_of(logits.dtype),
             [&](index_t first, index_t last) {
               for (index_t r = first; r < last; ++r) {
                 const T* row = cpu::row_of<T>(logits, r);
                 float* out = cpu::row_of<float>(stats, r);
                 out[0] = -std::numeric_limits<float>::infinity(), out[1] = 0.0F;
                 if (logits.cols > 0) cpu::kernels_for<T>().xent_stats(row, logits.cols, out);
                 const index_t target = targets.as<std::int32_t>()[r];
                 const bool here = target >= 0 && target >= col0 && target < col0 + logits.cols;
                 out[2] = here ? static_cast<float>(row[target - col0]) : 0.0F;
               }
             });
  });
}

void CpuOps::xent_merge(Queue& queue, ConstTensorView stats, index_t parts, ConstTensorView targets,
                        TensorView lse, TensorView loss) {
  const index_t rows = lse.cols;
  const auto part = [&](index_t p, index_t r) { return cpu::row_of<float>(stats, p * rows + r); };
  const auto merge_row = [&](index_t r) {
    double max = -std::numeric_limits<double>::infinity(), sum = 0, target = 0;
    for (index_t p = 0; p < parts; ++p) max = std::max(max, static_cast<double>(part(p, r)[0]));
    for (index_t p = 0; p < parts; ++p) {
      const float* row = part(p, r);
      target += static_cast<double>(row[2]);
      if (row[1] != 0.0F)
        sum += static_cast<double>(row[1]) * std::exp(static_cast<double>(row[0]) - max);
    }
    const double log_sum = max + std::log(sum);
    lse.as<float>()[r] = static_cast<float>(log_sum);
    const bool ignored = targets.as<std::int32_t>()[r] < 0;
    loss.as<float>()[r] = ignored ? 0.0F : static_cast<float>(log_sum - target);
  };
  for_rows(queue, rows, 64 * parts, [&](index_t first, index_t last) {
    for (index_t r = first; r < last; ++r) merge_row(r);
  });
}

void CpuOps::xent_grad(Queue& queue, TensorView logits, ConstTensorView targets, index_t col0,
                       ConstTensorView lse, double scale) {
  cpu::visit_activation(logits.dtype, [&]<class T>(T) {
    const auto grad_row = [&](index_t r) {
      T* row = cpu::row_of<T>(logits, r);
      const index_t target = targets.as<std::int32_t>()[r], at = target - col0;
      if (target < 0) return void(std::fill_n(row, logits.cols, T{}));
      const bool here = at >= 0 && at < logits.cols;
      const double logit = here ? static_cast<double>(row[at]) : 0.0;
      const float l = lse.as<float>()[r];
      cpu::kernels_for<T>().xent_grad(row, logits.cols, l, static_cast<float>(scale));
      if (here) row[at] = static_cast<T>(std::expm1(logit - static_cast<double>(l)) * scale);
    };
    for_rows(queue, logits.rows, 2 * logits.cols * size_of(logits.dtype),
             [&](index_t first, index_t last) {
               for (index_t r = first; r < last; ++r) grad_row(r);
             });
  });
}

}  // namespace t3d
