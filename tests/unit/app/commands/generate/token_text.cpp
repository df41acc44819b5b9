// Texts from tokens: whole characters only, and stop strings wherever the tokens' borders are.
#include "app/commands/generate/token_text.hpp"

#include "support/catch.hpp"

using namespace t3d;

namespace {

std::vector<std::int32_t> bytes_of(const std::string& text) {
  std::vector<std::int32_t> ids;
  for (const char letter : text) ids.push_back(static_cast<unsigned char>(letter));
  return ids;
}

/// What is shown of `text` that comes in pieces of `size` bytes, and whether it was stopped.
std::pair<std::string, bool> stopped(const std::string& text, std::size_t size,
                                     const std::vector<std::string>& stops) {
  StopStrings filter(stops);
  std::string shown;
  for (std::size_t at = 0; at < text.size() && !filter.stopped(); at += size)
    shown += filter.add(text.substr(at, size));
  if (!filter.stopped()) shown += filter.rest();
  return {shown, filter.stopped()};
}

}  // namespace

TEST_CASE("a character is shown when all of its bytes are there") {
  const auto tokenizer = make_byte_tokenizer();
  TokenText text(*tokenizer, bytes_of("prompt \xC3"));
  std::vector<std::string> shown;
  for (const std::int32_t id : bytes_of("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z"))
    shown.push_back(text.add(id));
  CHECK(shown == std::vector<std::string>{"a", "", "\xC3\xA9", "", "", "\xE2\x82\xAC", "", "", "",
                                          "\xF0\x9F\x98\x80", "z"});
  CHECK(text.rest().empty());
}

TEST_CASE("bytes that are no characters are shown at last") {
  const auto tokenizer = make_byte_tokenizer();
  TokenText text(*tokenizer, {});
  std::string shown;
  const std::string bytes = "\xF0\xF0\xF0\xF0\xF0\xC3";
  for (const std::int32_t id : bytes_of(bytes)) shown += text.add(id);
  CHECK(shown.size() >= 2);
  CHECK(shown + text.rest() == bytes);
}

TEST_CASE("stop strings end a text wherever its pieces end") {
  for (std::size_t size = 1; size < 12; ++size) {
    INFO("pieces of " << size);
    using Shown = std::pair<std::string, bool>;
    CHECK(stopped("one two three", size, {"two"}) == Shown{"one ", true});
    CHECK(stopped("one two three", size, {"three", "wo t"}) == Shown{"one t", true});
    CHECK(stopped("one two thre", size, {"three"}) == Shown{"one two thre", false});
    CHECK(stopped("aaab", size, {"aab"}) == Shown{"a", true});
    CHECK(stopped("abcabd", size, {"abd", "bcx"}) == Shown{"abc", true});
    CHECK(stopped("stop", size, {"stop"}) == Shown{"", true});
    CHECK(stopped("text", size, {}) == Shown{"text", false});
  }
}

TEST_CASE("nothing is shown that may be the begin of a stop string") {
  StopStrings filter({"\n\n", "END"});
  CHECK(filter.add("a\n") == "a");
  CHECK(filter.add("b E") == "\nb ");
  CHECK(filter.add("N") == "");
  CHECK(filter.add("X") == "ENX");
  CHECK(filter.rest().empty());
}
