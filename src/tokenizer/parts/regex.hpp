// Regular expressions and plain strings, searched for in texts. Oniguruma: the library whose syntax
// the expressions of tokenizer.json are written in.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct re_pattern_buffer;

namespace t3d::tok {

/// Part of a text: what matches, or what lies between two matches.
struct Span {
  std::size_t begin, end;
  bool match;
};

class Pattern {
 public:
  /// Error(io) when `expression` is none.
  [[nodiscard]] static Pattern regex(const std::string& expression);
  [[nodiscard]] static Pattern plain(std::string text);
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  /// The whole text as spans in order; a match may be empty, what lies between may not. Valid
  /// UTF-8. Error(config) when the expression goes back over the text too often.
  [[nodiscard]] std::vector<Span> spans(std::string_view text) const;
  /// Every match replaced by `with`, as it is.
  [[nodiscard]] std::string replaced(std::string_view text, std::string_view with) const;

 private:
  Pattern();
  using Found = std::function<void(std::size_t begin, std::size_t end)>;
  void each_match(std::string_view text, const Found& found) const;
  void each_regex_match(std::string_view text, const Found& found) const;

  struct FreeRegex {
    void operator()(re_pattern_buffer* compiled) const;
  };
  std::string text_;                                        // the plain string, or the expression
  std::unique_ptr<re_pattern_buffer, FreeRegex> compiled_;  // null: a plain string
};

}  // namespace t3d::tok
