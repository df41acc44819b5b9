#include "io/checkpoint/cover_sum.hpp"

#include <fmt/core.h>

namespace t3d {
namespace {

constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
constexpr std::uint64_t kX = 0x0a3c59d1e86b27f5U, kY = 0x173f6e90c4d8a21bU;  // any two below it

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  const std::uint64_t sum =
      static_cast<std::uint64_t>(product >> 61) + (static_cast<std::uint64_t>(product) & kPrime);
  return sum >= kPrime ? sum - kPrime : sum;
}

std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
  return a + b >= kPrime ? a + b - kPrime : a + b;
}

std::uint64_t power(std::uint64_t base, std::uint64_t exponent) {
  std::uint64_t result = 1;
  for (; exponent > 0; exponent /= 2, base = times(base, base))
    if (exponent % 2 != 0) result = times(result, base);
  return result;
}

/// base^first + ... + base^(first + count - 1), with 1 / (base - 1).
std::uint64_t series(std::uint64_t base, std::uint64_t inverse, index_t first, index_t count) {
  const std::uint64_t last = power(base, static_cast<std::uint64_t>(count));
  return times(times(power(base, static_cast<std::uint64_t>(first)), plus(last, kPrime - 1)),
               inverse);
}

}  // namespace

CoverSum cover_sum(const Box& box) {
  static const std::uint64_t of_x = power(kX - 1, kPrime - 2), of_y = power(kY - 1, kPrime - 2);
  if (box.empty()) return {};
  return {times(series(kX, of_x, box.row0, box.rows), series(kY, of_y, box.col0, box.cols)),
          box.count()};
}

CoverSum operator+(const CoverSum& a, const CoverSum& b) {
  return {plus(a.sum, b.sum), a.elements + b.elements};
}

std::string cover_sum_fault(const CoverSum& sum, index_t rows, index_t cols) {
  const CoverSum whole = cover_sum({0, 0, rows, cols});
  if (sum == whole) return {};
  if (sum.elements < whole.elements)
    return fmt::format("{} of {} elements are in no box", whole.elements - sum.elements,
                       whole.elements);
  return fmt::format("boxes of {} elements overlap, or lie beside its {}", sum.elements,
                     whole.elements);
}

}  // namespace t3d
