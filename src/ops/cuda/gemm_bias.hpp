// A bias in the number format of C: cuBLASLt adds no other.
#pragma once
#include "device/device.hpp"

namespace t3d::cuda {

/// to = from rounded; both [1, n], `from` fp32, `to` any activation dtype.
void round_bias(Queue& queue, ConstTensorView from, TensorView to);

}  // namespace t3d::cuda
