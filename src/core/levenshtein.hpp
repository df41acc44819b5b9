// Which known word did the user mean? Edit distance with transpositions, for hints in messages.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/types.hpp"

namespace t3d {

/// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`.
[[nodiscard]] index_t edit_distance(std::string_view a, std::string_view b);

/// The nearest of `words`, or nothing when none is near enough to be a plausible slip (a third of
/// the longer word). The first of equals wins.
[[nodiscard]] std::optional<std::string> nearest_word(std::string_view word,
                                                      std::span<const std::string> words);

}  // namespace t3d
