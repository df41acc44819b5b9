// What makers of GPUs promise of matrix products: the other denominator of MFU, beside the rate
// that was measured.
#pragma once
#include <string_view>

#include "core/choices.hpp"

namespace t3d {

/// Flops per second by the data sheet, dense (without structured sparsity) and with sums in fp32,
/// of the units that do products of this type. `device`: its name as the driver gives it. 0 where
/// the table does not have it (a part of a GPU, a laptop's, a CPU), or the GPU has no such units.
[[nodiscard]] double vendor_peak(std::string_view device, ComputeType compute, MatmulType matmul);

}  // namespace t3d
