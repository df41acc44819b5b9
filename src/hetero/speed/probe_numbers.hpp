// Operands for measurements.
#pragma once
#include "hetero/speed/probe.hpp"

namespace t3d {

/// [rows, cols] of normal numbers: multiplying zeros costs a GPU less power.
[[nodiscard]] Tensor probe_numbers(const ProbeMachine& machine, DType type, index_t rows,
                                   index_t cols);
/// [1, count] int32 in [0, vocab).
[[nodiscard]] Tensor probe_ids(const ProbeMachine& machine, index_t count, index_t vocab);

}  // namespace t3d
