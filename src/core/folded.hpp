// Long lines of the program's output, folded for screens.
#pragma once
#include <cstddef>
#include <string>

namespace t3d {

/// Of what the program prints: letters of a line, unless a word is longer.
inline constexpr std::size_t kColumns = 100;

/// In lines of kColumns, the later ones indented; words stay whole. No end of line behind the last.
[[nodiscard]] inline std::string folded(const std::string& line, std::size_t indent) {
  std::string text, rest = line;
  while (rest.size() > kColumns) {
    std::size_t end = rest.rfind(' ', kColumns);
    if (end == std::string::npos || end <= indent) end = rest.find(' ', kColumns);
    if (end == std::string::npos) break;
    text += rest.substr(0, end) + "\n";
    rest = std::string(indent, ' ') + rest.substr(end + 1);
  }
  return text + rest;
}

}  // namespace t3d
