// {"String": "..."} or {"Regex": "..."} of tokenizer.json.
#pragma once
#include "tokenizer/parts/json_part.hpp"
#include "tokenizer/parts/regex.hpp"

namespace t3d::tok {

[[nodiscard]] inline Pattern pattern_part(const JsonPart& part) {
  part.only({"String", "Regex"});
  if (part.has("String")) return Pattern::plain(part.text("String"));
  const JsonPart expression = part.at("Regex");
  try {
    return Pattern::regex(expression.text());
  } catch (const Error& error) {
    expression.fail("{}", error.what());
  }
}

}  // namespace t3d::tok
