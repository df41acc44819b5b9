// Numbers with the word for what they count.
#pragma once
#include <fmt/core.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace t3d {

/// "1 step", "2 steps"; counted(3, "axis", "axes") is "3 axes".
template <class Number>
[[nodiscard]] std::string counted(Number count, std::string_view one, std::string_view many = {}) {
  if (count == Number{1}) return fmt::format("{} {}", count, one);
  return many.empty() ? fmt::format("{} {}s", count, one) : fmt::format("{} {}", count, many);
}

/// A whole number with commas between thousands: "10,889,660".
[[nodiscard]] inline std::string with_commas(double count) {
  std::string text = fmt::format("{:.0f}", count);
  const std::ptrdiff_t first = text.starts_with('-') ? 1 : 0;
  for (std::ptrdiff_t at = std::ssize(text) - 3; at > first; at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

}  // namespace t3d
