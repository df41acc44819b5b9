// Bytes as characters that can be seen, the alphabet of byte-level BPE: a printable byte of Latin-1
// is itself, the other 68 are U+0100 and the following, in order (GPT-2, 2019).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace t3d::tok {

[[nodiscard]] char32_t letter_of_byte(std::uint8_t byte);
/// -1 = of no byte.
[[nodiscard]] int byte_of_letter(char32_t letter);
/// Appends the bytes of `text` as letters.
void append_letters(std::string_view text, std::string& out);
/// Appends the bytes that the letters of `token` stand for. False, and nothing is appended, when
/// one stands for none.
bool append_bytes(std::string_view token, std::string& out);

}  // namespace t3d::tok
