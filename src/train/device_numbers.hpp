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

/// [1, n]; blocks until they are there.
[[nodiscard]] inline Tensor numbers_on_device(const Context& context,
                                              const std::vector<double>& values) {
  Tensor result =
      context.make(DType::f64, 1, static_cast<index_t>(values.size()), MemoryKind::workspace);
  context.device.copy(result.view().data, values.data(), result.view().bytes(), context.queue);
  context.queue.synchronize();
  return result;
}

}  // namespace t3d
