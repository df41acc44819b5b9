// Which shapes of an operator to measure: spread evenly over the logarithms of the extents that
// ranks of a cuboid meet, thin ones too, by an additive recurrence (Roberts 2018), so that any
// number of them covers the range. Pure arithmetic.
#pragma once
#include <vector>

#include "forecast/cluster/operator_terms.hpp"

namespace t3d {

using OperatorShape = std::array<double, Sample::kMostColumns>;

/// What one call may need at most.
struct ShapeLimits {
  double work = 0;   // of the kind's second term: flops, bytes
  double bytes = 0;  // of operands in fp32
};
/// `count` different shapes, or fewer where there are not so many, but one. matmul: in threes, the
/// products of one linear.
[[nodiscard]] std::vector<OperatorShape> operator_shapes(OperatorKind kind, std::size_t count,
                                                         const ShapeLimits& most);
/// Of one set of operands with numbers of `size` bytes, about.
[[nodiscard]] double operand_bytes(OperatorKind kind, double size, const OperatorShape& shape);
/// An embedding's table is measured with so many rows, and streams with rows so wide at most.
inline constexpr index_t kCalibratedVocab = 2048, kCalibratedWidth = 1024;
/// A small one, to find out how much fits, with its extents doubled so many times.
[[nodiscard]] OperatorShape first_shape(OperatorKind kind, int doublings = 0);

}  // namespace t3d
