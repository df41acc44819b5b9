// Operands for measurements.
#pragma once
#include "hetero/speed/probe.hpp"

namespace t3d {

/// [rows, cols] of normal numbers: multiplying zeros costs a GPU less power.
[[nodiscard]] Tensor probe_numbers(const ProbeMachine& machine, DType type, index_t rows,
                                   index_t cols);
/// [1, count] int32 in [0, vocab).
[[nodiscard]] Tensor probe_ids(const ProbeMachine& machine, index_t count, index_t vocab);

/// AdamW with a rate so small that the numbers stay what they are, and without decay.
[[nodiscard]] AdamWArgs probe_adamw(TensorView weight, TensorView m, TensorView v,
                                    ConstTensorView gradient);

}  // namespace t3d
