#include "tokenizer/parts/byte_level.hpp"

#include <array>

#include "tokenizer/parts/utf8.hpp"

namespace t3d::tok {
namespace {

constexpr int kLetters = 0x100 + 68;

struct Alphabet {
  std::array<char32_t, 256> letters{};
  std::array<std::string, 256> texts;
  std::array<int, kLetters> bytes{};

  Alphabet() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      letters[byte] = printable ? byte : next++;
      texts[byte] = utf8_of(letters[byte]);
      bytes[letters[byte]] = static_cast<int>(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet made;
  return made;
}

}  // namespace

char32_t letter_of_byte(std::uint8_t byte) { return alphabet().letters[byte]; }

int byte_of_letter(char32_t letter) { return letter < kLetters ? alphabet().bytes[letter] : -1; }

void append_letters(std::string_view text, std::string& out) {
  const Alphabet& letters = alphabet();
  for (const char byte : text) out += letters.texts[static_cast<std::uint8_t>(byte)];
}

bool append_bytes(std::string_view token, std::string& out) {
  const std::size_t before = out.size();
  for (std::size_t at = 0; at < token.size();) {
    const int byte = byte_of_letter(next_char(token, at));
    if (byte < 0) {
      out.resize(before);
      return false;
    }
    out.push_back(static_cast<char>(byte));
  }
  return true;
}

}  // namespace t3d::tok
