// The scanners of the three patterns beside the regular expressions that they stand for.
#include "tokenizer/parts/word_pattern.hpp"

#include <random>

#include "io/posix_file.hpp"
#include "support/catch.hpp"
#include "tokenizer/parts/regex.hpp"
#include "tokenizer/parts/utf8.hpp"

using namespace t3d;
using namespace t3d::tok;

namespace {

std::string cut_by_regex(const Pattern& pattern, std::string_view text) {
  std::string words;
  for (const Span& span : pattern.spans(text))
    words += std::string(text.substr(span.begin, span.end - span.begin)) + '|';
  return words;
}

std::string cut_by_scanner(WordPattern pattern, std::string_view text) {
  const WordScanner scanner(pattern);
  std::string words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = scanner.word_end(text, at);
    REQUIRE(end > at);
    words += std::string(text.substr(at, end - at)) + '|';
    at = end;
  }
  return words;
}

/// Short texts of what the patterns tell apart.
std::string random_text(std::mt19937& random) {
  static const std::vector<std::string> parts{"a",
                                              "Z",
                                              "\xC3\xA9",
                                              "\xE4\xB8\xAD",
                                              "1",
                                              "\xD9\xA3",
                                              "\xC2\xBD",
                                              " ",
                                              " ",
                                              "\t",
                                              "\n",
                                              "\r",
                                              "\xC2\xA0",
                                              "\xE3\x80\x80",
                                              "'",
                                              "'",
                                              "s",
                                              "S",
                                              "\xC5\xBF",
                                              "re",
                                              "vE",
                                              "ll",
                                              "d",
                                              "!",
                                              ".",
                                              "\xE2\x80\x99",
                                              "\xCC\x81",
                                              "\xF0\x9F\x98\x80",
                                              "_",
                                              std::string(1, '\0'),
                                              "\xE2\x80\x8B",
                                              "\x1C",
                                              "\xC2\x85"};
  std::string text;
  for (std::size_t n = 1 + random() % 12; n > 0; --n) text += parts[random() % parts.size()];
  return text;
}

}  // namespace

TEST_CASE("scanners cut where their expressions do") {
  const std::string text =
      read_text_file(std::string(T3D_TEST_SOURCE) + "/reference/tokenizers/text.txt");
  for (const WordPattern pattern : {WordPattern::gpt2, WordPattern::llama3, WordPattern::qwen2}) {
    CAPTURE(expression_of(pattern));
    CHECK(pattern_of(expression_of(pattern)) == pattern);
    const Pattern regex = Pattern::regex(std::string(expression_of(pattern)));
    CHECK((cut_by_scanner(pattern, text) == cut_by_regex(regex, text)));
    std::mt19937 random(1);
    for (int n = 0; n < 20000; ++n) {
      const std::string sample = random_text(random);
      const std::string words = cut_by_scanner(pattern, sample);
      if (words == cut_by_regex(regex, sample)) continue;
      CAPTURE(sample);
      CHECK(words == cut_by_regex(regex, sample));
    }
  }
  CHECK_FALSE(pattern_of("\\s+").has_value());
}

TEST_CASE("bytes that are no text are symbols, and none is lost") {
  for (const WordPattern pattern : {WordPattern::gpt2, WordPattern::llama3, WordPattern::qwen2}) {
    CHECK(cut_by_scanner(pattern, "ab\xFF\xFE cd \xC3") == "ab|\xFF\xFE| cd| \xC3|");
    CHECK(cut_by_scanner(pattern, "\xED\xA0\x80") == "\xED\xA0\x80|");
  }
}
