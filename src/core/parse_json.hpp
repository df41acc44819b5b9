// Texts of JSON that others wrote. Whatever writes, copies or compares a value calls itself for
// each bracket inside it: a file of brackets alone would end the program.
#pragma once
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace t3d {

inline constexpr int kMostBrackets = 16;  // in each other; no file of this program has so many

/// As Json::parse(), whose exceptions it throws; Error(config) naming `source` where brackets nest
/// deeper.
template <class Json>
[[nodiscard]] Json parse_json(std::string_view text, std::string_view source) {
  return Json::parse(text, [&](int depth, typename Json::parse_event_t, const Json&) {
    if (depth > kMostBrackets)
      throw_error(ExitCode::config, "{}: brackets nest deeper than {}", source, kMostBrackets);
    return true;
  });
}

}  // namespace t3d
