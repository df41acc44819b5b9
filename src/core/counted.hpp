// Numbers with the word for what they count.
#pragma once
#include <fmt/core.h>

#include <string>
#include <string_view>

namespace t3d {

/// "1 step", "2 steps"; counted(3, "axis", "axes") is "3 axes".
template <class Number>
[[nodiscard]] std::string counted(Number count, std::string_view one, std::string_view many = {}) {
  if (count == Number{1}) return fmt::format("{} {}", count, one);
  return many.empty() ? fmt::format("{} {}s", count, one) : fmt::format("{} {}", count, many);
}

}  // namespace t3d
