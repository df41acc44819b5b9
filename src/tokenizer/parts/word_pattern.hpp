// The three patterns that cut a text into words for byte-level BPE, as scanners: what a regular
// expression engine does in microseconds a word takes tens of nanoseconds. tests/unit compares each
// with its expression.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/parts/unicode.hpp"

namespace t3d::tok {

enum class WordPattern : std::uint8_t { gpt2, llama3, qwen2 };  // llama3 is also cl100k's

[[nodiscard]] std::string_view expression_of(WordPattern pattern);
/// Nothing when the expression is none of the three, letter by letter.
[[nodiscard]] std::optional<WordPattern> pattern_of(std::string_view expression);

class WordScanner {
 public:
  explicit WordScanner(WordPattern pattern) : pattern_(pattern), classes_(CharClasses::get()) {}
  /// The end of the word that begins at `at` < text.size(). Words cover the text. Bytes that are no
  /// UTF-8 count as symbols.
  [[nodiscard]] std::size_t word_end(std::string_view text, std::size_t at) const {
    return pattern_ == WordPattern::gpt2 ? gpt2_end(text, at) : later_end(text, at);
  }

 private:
  [[nodiscard]] CharClass class_at(std::string_view text, std::size_t& at) const {
    return classes_[next_char_(text, at)];
  }
  static char32_t next_char_(std::string_view text, std::size_t& at);
  [[nodiscard]] std::size_t run_end(std::string_view text, std::size_t at, CharClass kind) const;
  [[nodiscard]] std::size_t spaces_end(std::string_view text, std::size_t at) const;
  [[nodiscard]] std::size_t digits_end(std::string_view text, std::size_t at) const;
  [[nodiscard]] std::size_t gpt2_end(std::string_view text, std::size_t at) const;
  [[nodiscard]] std::size_t later_end(std::string_view text, std::size_t at) const;

  WordPattern pattern_;
  const CharClasses& classes_;
};

}  // namespace t3d::tok
