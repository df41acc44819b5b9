// Numbers as people read them.
#pragma once
#include <fmt/core.h>

#include <cmath>
#include <cstddef>
#include <string>

namespace t3d {

/// With commas between thousands: "10,889,660".
[[nodiscard]] inline std::string with_commas(double count) {
  std::string text = fmt::format("{:.0f}", count);
  const std::ptrdiff_t first = text.starts_with('-') ? 1 : 0;
  for (std::ptrdiff_t at = std::ssize(text) - 3; at > first; at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

/// So many significant digits below 10^digits, commas and no exponent above: "9.13", "11,160".
[[nodiscard]] inline std::string readable(double value, int digits = 3) {
  const bool large = std::isfinite(value) && std::abs(value) >= std::pow(10.0, digits) - 0.5;
  return large ? with_commas(value) : fmt::format("{:.{}g}", value, digits);
}

}  // namespace t3d
