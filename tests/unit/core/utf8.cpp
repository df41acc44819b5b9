// Which bytes are UTF-8 (cases of RFC 3629), and how others are shown.
#include "core/utf8.hpp"

#include "support/catch.hpp"

namespace t3d {

TEST_CASE("UTF-8 is told from other bytes") {
  for (const char* good : {"", "abc", "\u00fc", "\u20ac", "\U0001F600", "\xed\x9f\xbf",
                           "\xee\x80\x80", "\xf4\x8f\xbf\xbf"})
    CHECK(is_utf8(good));
  for (const char* bad :
       {"\x80", "\xff", "r\xff", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xc3(", "\xe2\x82(",
        "\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf",  // overlong
        "\xed\xa0\x80", "\xed\xbf\xbf",                              // surrogates
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xfe"})             // above U+10FFFF
    CHECK_FALSE(is_utf8(bad));
}

TEST_CASE("any text can be shown as one line of UTF-8") {
  CHECK(printable("a\u00fcb c") == "a\u00fcb c");
  CHECK(printable("a\nb\x7f\x01") == "a\\x0Ab\\x7F\\x01");
  CHECK(printable("r\xff.toml") == "r\\xFF.toml");
  CHECK(printable("\xe2\x82") == "\\xE2\\x82");
  CHECK(printable(std::string(1000, 'x'), 100).size() < 110);
  CHECK(printable(std::string(1000, 'x'), 100).ends_with("..."));
}

}  // namespace t3d
