// A cell of a table of comma-separated values (RFC 4180).
#pragma once
#include <string>
#include <string_view>

namespace t3d {

/// In quotation marks where it has to be; line breaks become blanks, so that a row is a line.
[[nodiscard]] inline std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string cell = "\"";
  for (const char letter : text) {
    if (letter == '"') cell += '"';
    cell += letter == '\n' || letter == '\r' ? ' ' : letter;
  }
  return cell + "\"";
}

}  // namespace t3d
