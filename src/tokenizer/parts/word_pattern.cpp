#include "tokenizer/parts/word_pattern.hpp"

#include <algorithm>
#include <array>

#include "tokenizer/parts/utf8.hpp"

namespace t3d::tok {
namespace {

constexpr std::array<std::string_view, 3> kExpressions{
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

/// The end of 's, 't, 're, 've, 'm, 'll or 'd behind the apostrophe at `at`; `at` when it is none.
/// Without regard to case, U+017F is an s.
std::size_t contraction_end(std::string_view text, std::size_t at, bool any_case) {
  const auto letter = [&](std::size_t n) {
    if (at + n >= text.size()) return '\0';
    const char byte = text[at + n];
    return any_case && byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
  };
  const char first = letter(1), second = letter(2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  if ((first == 'r' || first == 'v') && second == 'e') return at + 3;
  if (first == 'l' && second == 'l') return at + 3;
  if (any_case && text.substr(at + 1, 2) == "\xC5\xBF") return at + 3;
  return at;
}

bool is_line_end(char byte) { return byte == '\n' || byte == '\r'; }

}  // namespace

std::string_view expression_of(WordPattern pattern) {
  return kExpressions[static_cast<std::size_t>(pattern)];
}

std::optional<WordPattern> pattern_of(std::string_view expression) {
  const auto found = std::find(kExpressions.begin(), kExpressions.end(), expression);
  if (found == kExpressions.end()) return std::nullopt;
  return static_cast<WordPattern>(found - kExpressions.begin());
}

char32_t WordScanner::next_char_(std::string_view text, std::size_t& at) {
  return next_char(text, at);
}

std::size_t WordScanner::run_end(std::string_view text, std::size_t at, CharClass kind) const {
  while (at < text.size()) {
    std::size_t next = at;
    if (class_at(text, next) != kind) break;
    at = next;
  }
  return at;
}

// \s+(?!\S)|\s+ : the last space of several goes with what follows.
std::size_t WordScanner::spaces_end(std::string_view text, std::size_t at) const {
  const std::size_t end = run_end(text, at, CharClass::space);
  if (end == text.size()) return end;
  const std::size_t last = end - bytes_before(text, end);
  return last > at ? last : end;
}

std::size_t WordScanner::gpt2_end(std::string_view text, std::size_t at) const {
  if (text[at] == '\'')
    if (const std::size_t end = contraction_end(text, at, false); end != at) return end;
  std::size_t next = at;
  CharClass kind = class_at(text, next);
  if (kind == CharClass::space) {
    if (text[at] != ' ' || next == text.size()) return spaces_end(text, at);
    kind = class_at(text, next);
    if (kind == CharClass::space) return spaces_end(text, at);
  }
  return run_end(text, next, kind);
}

std::size_t WordScanner::digits_end(std::string_view text, std::size_t at) const {
  const int most = pattern_ == WordPattern::llama3 ? 3 : 1;
  for (int n = 0; n < most && at < text.size(); ++n) {
    std::size_t next = at;
    if (class_at(text, next) != CharClass::number) break;
    at = next;
  }
  return at;
}

std::size_t WordScanner::later_end(std::string_view text, std::size_t at) const {
  if (text[at] == '\'')
    if (const std::size_t end = contraction_end(text, at, true); end != at) return end;
  std::size_t next = at;
  const CharClass kind = class_at(text, next);
  if (kind == CharClass::letter) return run_end(text, next, kind);
  if (kind == CharClass::number) return digits_end(text, at);
  // One character that is no line end goes with the letters behind it, a space with symbols, too.
  std::size_t symbols = next;
  bool have_symbols = kind == CharClass::other;
  if (next < text.size() && !is_line_end(text[at])) {
    std::size_t second = next;
    const CharClass behind = class_at(text, second);
    if (behind == CharClass::letter) return run_end(text, second, behind);
    if (text[at] == ' ' && behind == CharClass::other) {
      have_symbols = true;
      symbols = second;
    }
  }
  if (have_symbols) {
    symbols = run_end(text, symbols, CharClass::other);
    while (symbols < text.size() && is_line_end(text[symbols])) ++symbols;
    return symbols;
  }
  const std::size_t end = run_end(text, next, CharClass::space);
  for (std::size_t last = end; last > at; --last)
    if (is_line_end(text[last - 1])) return last;
  return spaces_end(text, at);
}

}  // namespace t3d::tok
