// Do boxes cover a tensor exactly once? Each holder of boxes adds its own, and nobody needs to see
// all of them: a box is the sum of x^row y^column over its elements, modulo a prime, at a fixed
// place (x, y). Sums of boxes are equal to that of the whole tensor where every element is there
// once; where not, they differ but for one of 10^9 cases at the least, since two polynomials of
// degree n agree in at most n of 2^61 places (Schwartz, Zippel). Pure arithmetic.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/box.hpp"

namespace t3d {

struct CoverSum {
  std::uint64_t sum = 0;
  index_t elements = 0;
  friend bool operator==(const CoverSum&, const CoverSum&) = default;
};

/// Of boxes inside their tensor.
[[nodiscard]] CoverSum cover_sum(const Box& box);
[[nodiscard]] CoverSum operator+(const CoverSum& a, const CoverSum& b);
/// Empty text when boxes of this sum cover [rows, cols] exactly once, else what is wrong.
[[nodiscard]] std::string cover_sum_fault(const CoverSum& sum, index_t rows, index_t cols);

}  // namespace t3d
