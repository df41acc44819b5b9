// The log of the sum of exponentials in the order that cuDNN wants: by sequence, head, row.
#pragma once
#include "device/device.hpp"

namespace t3d::cuda {

/// statistics [lse.rows/length, lse.cols, length], packed <- lse, one row per token, one column per
/// head. Both fp32.
void statistics_from_lse(Queue& queue, ConstTensorView lse, index_t length, TensorView statistics);
/// The other way.
void lse_from_statistics(Queue& queue, ConstTensorView statistics, index_t length, TensorView lse);

}  // namespace t3d::cuda
