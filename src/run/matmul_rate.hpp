// What all ranks together reach in large matmuls: the denominator of MFU.
#pragma once
#include <string>

#include "core/dtype.hpp"
#include "train/machine.hpp"

namespace t3d {

struct MatmulRate {
  std::string kind;             // operators and number format, as "cpu fp32"
  double flops_per_second = 0;  // of all ranks at the same time; 0 = not known
  index_t size = 0;             // of the products, n x n times n x n, that reached it
};

/// Collective over machine.world(). `known`: what these ranks reached in an earlier life, if
/// anything. Then products of that size are measured once more, shortly, and the better of the two
/// rates counts: whatever disturbs only makes it lower. 0 with the reference operators.
[[nodiscard]] MatmulRate measure_matmul_rate(Machine& machine, DType type, const MatmulRate& known);

}  // namespace t3d
