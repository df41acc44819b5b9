// Large whole numbers as people read them.
#pragma once
#include <fmt/core.h>

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

}  // namespace t3d
