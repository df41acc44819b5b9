// One line of JSONL as a document.
#pragma once
#include <string>
#include <string_view>

namespace t3d {

/// Which fields of the objects are read: `text`, or where `completion` is given, it and `prompt`.
struct JsonFields {
  std::string text = "text", prompt, completion;
};

struct JsonDocument {
  std::string prompt;  // counts in no loss
  std::string text;
};

/// Error(config), without the place, when the line is no object of JSON, or a field is missing or
/// no string.
[[nodiscard]] JsonDocument parse_json_line(std::string_view line, const JsonFields& fields);

}  // namespace t3d
