// A few fp64 numbers on the device: scalars, weights, coefficients.
#pragma once
#include <vector>

#include "tensor3d/context.hpp"

namespace t3d {

[[nodiscard]] inline Tensor zeros(const Context& context, index_t rows, index_t cols) {
  Tensor result = context.make(DType::f64, rows, cols, MemoryKind::workspace);
  context.ops.fill(context.queue, result, 0);
  return result;
}

/// Into [1, n], in the order of the queue; the host does not wait.
inline void write_numbers(const Context& context, const std::vector<double>& values,
                          TensorView to) {
  context.device.copy(to.data, values.data(), to.bytes(), context.queue);
}

/// [1, n].
[[nodiscard]] inline Tensor numbers_on_device(const Context& context,
                                              const std::vector<double>& values) {
  Tensor result =
      context.make(DType::f64, 1, static_cast<index_t>(values.size()), MemoryKind::workspace);
  write_numbers(context, values, result);
  return result;
}

}  // namespace t3d
