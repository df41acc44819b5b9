// Numbers that are not finite, found without a branch per number: it costs less than writing them.
#pragma once
#include <cmath>
#include <limits>

#include "core/dtype.hpp"
#include "core/types.hpp"

namespace t3d {

template <class Number>
[[nodiscard]] bool all_finite(const Number* numbers, index_t count) {
  index_t ruined = 0;
  for (index_t n = 0; n < count; ++n)
    ruined += !(std::abs(numbers[n]) <= std::numeric_limits<Number>::max());
  return ruined == 0;
}

/// `type`: f64 or f32.
[[nodiscard]] inline bool all_finite(DType type, const void* numbers, index_t count) {
  return type == DType::f64 ? all_finite(static_cast<const double*>(numbers), count)
                            : all_finite(static_cast<const float*>(numbers), count);
}

}  // namespace t3d
