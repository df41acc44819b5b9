// What characters are, from ICU's tables; the rules are those of the programs that trained the
// tokenizers. Some of these programs know Unicode 8 or 9 only: younger characters are then nothing
// special here, either.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace t3d::tok {

/// As \p{L}, \p{N}, \s and the rest in the patterns of byte-level BPE; 200 thousand entries at
/// most are touched in practice.
enum class CharClass : std::uint8_t { other, letter, number, space };
class CharClasses {
 public:
  static const CharClasses& get();
  CharClass operator[](char32_t letter) const { return table_[letter]; }

 private:
  CharClasses();
  std::vector<CharClass> table_;  // of all code points
};

[[nodiscard]] bool is_space(char32_t letter);      // White_Space
[[nodiscard]] bool is_number(char32_t letter);     // N*
[[nodiscard]] bool is_word_char(char32_t letter);  // \w of Unicode's regular expressions, annex C
[[nodiscard]] bool is_mark(char32_t letter);       // M*, Unicode 9
/// P*, Unicode 8, and ASCII's symbols.
[[nodiscard]] bool is_punctuation(char32_t letter);
[[nodiscard]] bool is_bert_control(char32_t letter);  // Cc, Cf, Co, Unicode 8; not \t \n \r
[[nodiscard]] bool is_bert_mark(char32_t letter);     // Mn, Unicode 8

/// Each character alone: a final sigma is like any other.
void lower_case(std::string& text);

enum class NormalForm : std::uint8_t { nfc, nfd, nfkc, nfkd };
/// Of the characters of Unicode 9; the others stay. Valid UTF-8.
void to_normal_form(NormalForm form, std::string& text);

/// "15.0": that of the tables that this program uses.
[[nodiscard]] std::string unicode_version();
/// Characters that these tables do not know, since a later version assigns them or none has so far.
struct UnknownCharacters {
  std::int64_t count = 0;
  char32_t first = 0;
};
[[nodiscard]] UnknownCharacters unknown_characters(std::string_view text);

/// The ends of what a reader takes for one character (Unicode annex 29), in order.
[[nodiscard]] std::vector<std::size_t> grapheme_ends(std::string_view text);

}  // namespace t3d::tok
