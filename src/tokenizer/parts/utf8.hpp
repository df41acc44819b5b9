// UTF-8: characters one by one, what is valid, and what stands in for the rest.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace t3d::tok {

inline constexpr char32_t kReplacement = 0xFFFD;

enum class Utf8 : std::uint8_t { valid, invalid, cut };  // cut: the text ends inside a character

struct Utf8Step {
  Utf8 state;
  std::size_t bytes;  // of the character, or of what one U+FFFD stands in for; at least 1
  char32_t letter;    // U+FFFD unless valid
};

/// What stands at text[at]; at < text.size(). What is invalid is as long as the longest beginning
/// of a character (Unicode 15, 3.9, "maximal subparts"), as in Python and Rust.
[[nodiscard]] Utf8Step utf8_step(std::string_view text, std::size_t at);

/// The character at text[at], and moves `at` behind it.
inline char32_t next_char(std::string_view text, std::size_t& at) {
  const auto byte = static_cast<std::uint8_t>(text[at]);
  if (byte < 0x80) {
    ++at;
    return byte;
  }
  const Utf8Step step = utf8_step(text, at);
  at += step.bytes;
  return step.letter;
}

/// The number of bytes of the character before text[at]; at > 0, valid text.
[[nodiscard]] inline std::size_t bytes_before(std::string_view text, std::size_t at) {
  std::size_t begin = at - 1;
  while (begin > 0 && (static_cast<std::uint8_t>(text[begin]) & 0xC0U) == 0x80U) --begin;
  return at - begin;
}

void append_char(char32_t letter, std::string& out);
[[nodiscard]] std::string utf8_of(char32_t letter);
[[nodiscard]] bool is_utf8(std::string_view text);
/// U+FFFD in the place of what is not UTF-8.
[[nodiscard]] std::string repaired(std::string_view text);

/// Takes bytes in any portions and gives whole characters; U+FFFD in the place of what is none.
class Utf8Stream {
 public:
  [[nodiscard]] std::string feed(std::string_view bytes);
  [[nodiscard]] std::string finish();

 private:
  std::string held_;  // the beginning of a character
};

}  // namespace t3d::tok
