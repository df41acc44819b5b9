// The text of tokenizer.json to values.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace t3d::tok {

/// Error(io) when it is no JSON, has a key twice in one object, or lies deeper in brackets than any
/// tokenizer does.
[[nodiscard]] nlohmann::json parse_json(const std::string& text);

/// A decimal number as the programs read it that wrote these files: digits as an integer of 64 bits
/// (the rest is left out), times or by a power of ten. The last bit may differ from the nearest
/// double, and scores that tie with these bits must tie here.
[[nodiscard]] double json_number(std::string_view text);

}  // namespace t3d::tok
