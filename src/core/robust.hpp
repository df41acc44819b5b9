// Statistics that single outliers do not move: median, and median absolute deviation (MAD).
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace t3d {

/// Standard deviation / MAD, and standard error of a median / that of a mean, of normal values.
inline constexpr double kMadToDeviation = 1.4826, kMedianError = 1.2533;

/// 0 of no values; of an even number the mean of the two in the middle. Finite values only.
[[nodiscard]] inline double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}
[[nodiscard]] inline double median_of(std::span<const double> values) {
  return median_of(std::vector<double>(values.begin(), values.end()));
}

/// The same without a vector where there are few.
[[nodiscard]] inline double median_of_few(std::span<const double> values) {
  std::array<double, 16> sorted{};
  if (values.empty() || values.size() > sorted.size()) return median_of(values);
  std::size_t count = 0;
  for (const double value : values) {
    std::size_t at = count++;
    for (; at > 0 && sorted[at - 1] > value; --at) sorted[at] = sorted[at - 1];
    sorted[at] = value;
  }
  return count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2] + sorted[count / 2 - 1]) / 2;
}

/// The median of the distances from `center`.
[[nodiscard]] inline double mad_of(std::span<const double> values, double center) {
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::abs(value - center));
  return median_of(std::move(distances));
}

/// Standard error of a median of `count` values.
[[nodiscard]] inline double median_error(double mad, std::size_t count) {
  return count == 0 ? 0 : kMedianError * kMadToDeviation * mad / std::sqrt(double(count));
}

/// Standard error of the values' median; 0 for fewer than two.
[[nodiscard]] inline double median_error_of(std::span<const double> values) {
  return values.size() < 2 ? 0 : median_error(mad_of(values, median_of(values)), values.size());
}

}  // namespace t3d
