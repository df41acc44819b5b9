// What keys and words of the input are called in other programs: for hints in messages.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace t3d {

/// Our key ("table.key") for a key of that name in another program, whatever its table.
[[nodiscard]] std::optional<std::string> key_for_foreign(std::string_view name);

/// What to write for a word that other programs know as a value of `key`; empty = nothing is known.
[[nodiscard]] std::string hint_for_foreign_word(std::string_view key, std::string_view word);

}  // namespace t3d
