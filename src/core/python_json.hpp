// JSON as Python writes it.
#pragma once
#include <string>
#include <string_view>

namespace t3d {

/// The text with NaN, Infinity and -Infinity, which Python's json writes and no JSON has, as null;
/// strings stay as they are.
[[nodiscard]] inline std::string json_of_python(std::string_view text) {
  constexpr std::string_view kWords[] = {"NaN", "-Infinity", "Infinity"};
  std::string json;
  json.reserve(text.size());
  bool in_string = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    std::string_view word;
    if (!in_string)
      for (const std::string_view one : kWords)
        if (rest.starts_with(one)) word = one;
    if (!word.empty()) {
      json += "null";
      at += word.size();
      continue;
    }
    if (in_string && rest.size() > 1 && rest[0] == '\\')
      json += text[at++];
    else if (rest[0] == '"')
      in_string = !in_string;
    json += text[at++];
  }
  return json;
}

}  // namespace t3d
