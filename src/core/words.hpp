// Choices as enumerations, each with the words that inputs, plans and logs use for it. Strings end
// at the input: below app everything is typed.
#pragma once
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace t3d {

/// Specialised for every choice: `all` holds the words in the order of the enumerators, from 0 on.
template <class Choice>
struct Words;

template <class Choice>
concept Worded = requires {
  Words<Choice>::all;
};

template <Worded Choice>
[[nodiscard]] constexpr std::string_view word_of(Choice choice) {
  return Words<Choice>::all[static_cast<std::size_t>(choice)];
}

/// Nothing where no choice has this word.
template <Worded Choice>
[[nodiscard]] constexpr std::optional<Choice> choice_of(std::string_view word) {
  for (std::size_t at = 0; at < Words<Choice>::all.size(); ++at)
    if (Words<Choice>::all[at] == word) return static_cast<Choice>(at);
  return std::nullopt;
}

}  // namespace t3d

/// Choices print as their words.
template <t3d::Worded Choice>
struct fmt::formatter<Choice, char> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  template <class Context>
  auto format(Choice choice, Context& context) const {
    const std::string_view word = t3d::word_of(choice);
    return std::copy(word.begin(), word.end(), context.out());
  }
};
