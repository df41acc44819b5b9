#include "core/utf8.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace t3d {
namespace {

/// Bytes of the character at the start of `text`; 0 where there is none.
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || length > text.size()) return 0;
  for (std::size_t at = 1; at < length; ++at)
    if ((byte(at) & 0xc0U) != 0x80U) return 0;
  const unsigned second = byte(1);
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool surrogate = lead == 0xed && second > 0x9f;
  const bool too_high = lead == 0xf4 && second > 0x8f;
  return overlong || surrogate || too_high ? 0 : length;
}

}  // namespace

bool is_control(char letter) { return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f; }

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = character(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view text, std::size_t most) {
  std::string out;
  while (!text.empty()) {
    if (out.size() > most) return out + "...";
    const std::size_t length = character(text);
    if (length == 0 || is_control(text[0]))
      out += fmt::format("\\x{:02X}", static_cast<unsigned char>(text[0]));
    else
      out += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

}  // namespace t3d
