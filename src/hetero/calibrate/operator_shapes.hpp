// Which shapes of an operator to measure: spread evenly over the logarithms of the extents that
// ranks of a cuboid meet, thin ones too, by an additive recurrence (Roberts 2018), so that any
// number of them covers the range. Pure arithmetic.
#pragma once
#include <vector>

#include "hetero/cluster/operator_terms.hpp"

namespace t3d {

using OperatorShape = std::array<double, Sample::kMostColumns>;

/// `count` different shapes, or fewer where there are not so many, of which none has more than
/// `most` of the kind's second term (flops, bytes). matmul: in threes, the products of one linear.
[[nodiscard]] std::vector<OperatorShape> operator_shapes(OperatorKind kind, std::size_t count,
                                                         double most);
/// A small one, to find out how much fits.
[[nodiscard]] OperatorShape first_shape(OperatorKind kind);

}  // namespace t3d
