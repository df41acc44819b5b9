// The small parts of tokenizers: splitting, patterns, normalizers, merges, numbers, UTF-8.
#include <random>

#include "core/error.hpp"
#include "support/catch.hpp"
#include "tokenizer/parts/base64.hpp"
#include "tokenizer/parts/json_text.hpp"
#include "tokenizer/parts/merges.hpp"
#include "tokenizer/parts/normalizer.hpp"
#include "tokenizer/parts/pre_tokenizer.hpp"
#include "tokenizer/parts/regex.hpp"
#include "tokenizer/parts/split.hpp"
#include "tokenizer/parts/trie.hpp"
#include "tokenizer/parts/utf8.hpp"
#include "tokenizer/parts/word_cache.hpp"

using namespace t3d;
using namespace t3d::tok;
using Ids = std::vector<std::int32_t>;

namespace {

std::string normalized(const char* part, std::string text) {
  const auto json = parse_json(part);
  make_normalizer({json, "normalizer"})->apply(text);
  return text;
}

std::string cut(const char* part, const std::string& text) {
  const auto json = parse_json(part);
  std::vector<Piece> pieces{{text, true}};
  make_pre_tokenizer({json, "pre_tokenizer"})->split(pieces);
  std::string words;
  for (const Piece& piece : pieces) words += piece.text + '|';
  return words;
}

/// As Merges says, word by word and slowly.
Ids merged_slowly(const std::vector<std::array<std::int32_t, 4>>& merges, Ids symbols) {
  while (true) {
    std::size_t best = symbols.size();
    std::array<std::int32_t, 4> merge{0, 0, INT32_MAX, 0};
    for (std::size_t n = 0; n + 1 < symbols.size(); ++n)
      for (const auto& one : merges)
        if (one[0] == symbols[n] && one[1] == symbols[n + 1] && one[2] < merge[2]) {
          merge = one;
          best = n;
        }
    if (best == symbols.size()) return symbols;
    symbols[best] = merge[3];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

}  // namespace

TEST_CASE("a match goes, stays alone, or joins a neighbour") {
  const auto parts = [](SplitBehavior behavior) {
    const std::string text = "the-final--count-";
    std::string words;
    for (const Span& span : split_spans(Pattern::plain("-").spans(text), behavior))
      words += text.substr(span.begin, span.end - span.begin) + '|';
    return words;
  };
  CHECK(parts(SplitBehavior::removed) == "the|final|count|");
  CHECK(parts(SplitBehavior::isolated) == "the|-|final|-|-|count|-|");
  CHECK(parts(SplitBehavior::with_previous) == "the-|final-|-|count-|");
  CHECK(parts(SplitBehavior::with_next) == "the|-final|-|-count|-|");
  CHECK(parts(SplitBehavior::contiguous) == "the|-|final|--|count|-|");
}

TEST_CASE("expressions replace and are answered when they are none") {
  CHECK(Pattern::regex(" {2,}").replaced("a  b   c d", " ") == "a b c d");
  CHECK(Pattern::plain("ab").replaced("xabab", "$1") == "x$1$1");
  CHECK(Pattern::regex("x*").replaced("aé", "-") == "-a-é-");
  CHECK_THROWS_AS(Pattern::regex("(a"), Error);
  CHECK_THROWS_AS(Pattern::regex(std::string(5000, '(') + std::string(5000, ')')), Error);
  CHECK_THROWS_AS(Pattern::regex("(?:a|aa)+$").spans(std::string(60, 'a') + "b"), Error);
}

TEST_CASE("an expression that looks through the rest of a text at each letter is answered") {
  const std::string text(100'000, 'a');
  try {
    (void)Pattern::regex("[ab]+[bc]|a").spans(text);
    FAIL("it was taken");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::config);
    CHECK_THAT(error.what(), test::contains("\"[ab]+[bc]|a\""));
    CHECK_THAT(error.what(), test::contains("text of 100000 bytes: it goes back"));
  }
  // What goes back now and then is taken: over long stretches without a match, and in short words.
  CHECK(Pattern::regex("[ab]+[bc]").spans(text + "b").size() == 1);
  CHECK(Pattern::regex("[xy]+[yz]").replaced(text + "xy", "") == text);
  std::string words;
  for (std::size_t n = 0; n < 20'000; ++n) words += std::string(1 + n % 60, 'a') + " ";
  CHECK(Pattern::regex("[ab]+[bc]|a+").replaced(words, "").find('a') == std::string::npos);
}

TEST_CASE("normalizers change what they should") {
  CHECK(normalized(R"({"type":"NFC"})", "e\xCC\x81") == "\xC3\xA9");
  CHECK(normalized(R"({"type":"NFKC"})", "\xEF\xAC\x81\xC2\xBD") ==
        "fi1\xE2\x81\x84"
        "2");
  CHECK(normalized(R"({"type":"NFKC"})", "\xE3\x8B\xBF") == "\xE3\x8B\xBF");  // of Unicode 12.1
  CHECK(normalized(R"({"type":"Lowercase"})", "\xC4\xB0\xCE\xA3") == "i\xCC\x87\xCF\x83");
  CHECK(normalized(R"({"type":"Strip","strip_left":true,"strip_right":false})", " \n a ") == "a ");
  CHECK(normalized(R"({"type":"Prepend","prepend":"x"})", "").empty());
  CHECK(normalized(R"({"type":"Nmt"})", std::string("a\x01\tb\0", 5)) == std::string("a b\0", 4));
  CHECK(normalized(R"({"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,
                       "strip_accents":null,"lowercase":true})",
                   "\xC3\x89t\xC3\xA9\t\xE4\xB8\xAD\x07") == "ete  \xE4\xB8\xAD ");
}

TEST_CASE("pre-tokenizers cut where they should") {
  CHECK(cut(R"({"type":"Whitespace"})", "a_b, c!? ") == "a_b|,|c|!?|");
  CHECK(cut(R"({"type":"BertPreTokenizer"})", "don't  x") == "don|'|t|x|");
  CHECK(cut(R"({"type":"Digits","individual_digits":false})", "a12b3") == "a|12|b|3|");
  CHECK(cut(R"({"type":"Punctuation","behavior":"Removed"})", "a!b") == "a|b|");
  const std::string mark = "\xE2\x96\x81";
  CHECK(cut(R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"first"})", "a b") ==
        mark + "a|" + mark + "b|");
  CHECK(cut(R"({"type":"Metaspace","replacement":"▁","add_prefix_space":false,"split":false})",
            "a b") == "a" + mark + "b|");
  CHECK(cut(R"({"type":"ByteLevel","add_prefix_space":true})", "é b") == "ĠÃ©|Ġb|");
}

TEST_CASE("long words merge as short ones do") {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    Merges merges;
    std::vector<std::array<std::int32_t, 4>> list;
    for (std::int32_t rank = 0; rank < 12; ++rank) {
      const auto symbol = [&] {
        return static_cast<std::int32_t>(random() % (3U + unsigned(rank)));
      };
      list.push_back({symbol(), symbol(), rank, 3 + rank});
      const auto& last = list.back();
      for (auto& one : list)
        if (&one != &last && one[0] == last[0] && one[1] == last[1]) one[2] = INT32_MAX;
      merges.add(last[0], last[1], rank, last[3]);
    }
    for (const std::size_t length : {0U, 1U, 2U, 20U, 48U, 49U, 300U}) {
      Ids symbols(length);
      for (auto& symbol : symbols) symbol = static_cast<std::int32_t>(random() % 3);
      const Ids wanted = merged_slowly(list, symbols);
      merges.apply(symbols);
      CHECK(symbols == wanted);
    }
  }
}

TEST_CASE("a full cache forgets and goes on") {
  WordCache cache;
  Ids ids;
  for (std::int32_t n = 0; n < 200000; ++n) {
    const std::string word = std::to_string(n);
    const auto hash = WordCache::hash_of(word);
    if (!cache.find(word, hash, ids)) cache.add(word, hash, std::span(&n, 1));
    CHECK((cache.find(word, hash, ids) && ids.back() == n));
    ids.clear();
  }
  CHECK_FALSE(cache.find("x", WordCache::hash_of("x"), ids));
}

TEST_CASE("words by their bytes") {
  Trie trie;
  std::vector<std::string> words;
  for (std::int32_t n = 0; n < 2000; ++n) trie.add(words.emplace_back(std::to_string(n * n)), n);
  std::vector<std::size_t> lengths;
  trie.each_prefix("x1444", 1, [&](std::size_t bytes, std::int32_t value) {
    lengths.push_back(bytes);
    CHECK(words[static_cast<std::size_t>(value)].size() == bytes);
  });
  CHECK(lengths == std::vector<std::size_t>{1, 3, 4});  // 1, 144, 1444
  CHECK_FALSE(trie.may_begin('x'));
}

TEST_CASE("numbers are read as the writers of the files read them") {
  CHECK(json_number("0.1") == 0.1);
  CHECK(json_number("-12.5e-3") == -0.0125);
  CHECK(json_number("-11.196920155321457") == -11196920155321457.0 / 1e15);
  CHECK(json_number("11.196920155321457") != 11.196920155321457);  // not the nearest double
  CHECK(json_number("123456789012345678901234567890") == 12345678901234567890.0 * 1e10);
  CHECK(json_number("1e-400") == 0);
  CHECK_THROWS_AS(json_number("1e999999999999"), Error);
  CHECK(parse_json("[1, -2, 0.5]")[2] == 0.5);
}

TEST_CASE("what is no UTF-8 becomes U+FFFD, one for each broken character") {
  const std::string bad = "\xEF\xBF\xBD";
  CHECK(repaired("a\xFF"
                 "b") == "a" + bad + "b");
  CHECK(repaired("\xE4\xB8"
                 "x") == bad + "x");
  CHECK(repaired("\xED\xA0\x80") == bad + bad + bad);
  CHECK(repaired("\xF0\x9F\x98") == bad);
  CHECK(repaired("\xC0\xAF") == bad + bad);
  Utf8Stream stream;
  CHECK(stream.feed("\xF0\x9F").empty());
  CHECK(stream.feed("\x98\x80x") == "\xF0\x9F\x98\x80x");
  CHECK(stream.feed("\xC3").empty());
  CHECK(stream.finish() == bad);
  CHECK(stream.finish().empty());
}

TEST_CASE("base64 or nothing") {
  CHECK(base64_bytes("aGVsbG8=") == "hello");
  CHECK(base64_bytes("") == "");
  for (const char* wrong : {"a", "aGVsbG8", "a===", "aG=sbG8=", "aGVs*G8="})
    CHECK_FALSE(base64_bytes(wrong).has_value());
}
