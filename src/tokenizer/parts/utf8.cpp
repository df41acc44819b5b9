#include "tokenizer/parts/utf8.hpp"

#include <algorithm>
#include <utility>

namespace t3d::tok {
namespace {

struct Lead {
  std::size_t bytes = 0;                   // of the character; 0 = no character begins so
  std::uint8_t least = 0x80, most = 0xBF;  // of its second byte
};

Lead lead_of(std::uint8_t byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {};
}

}  // namespace

Utf8Step utf8_step(std::string_view text, std::size_t at) {
  const auto first = static_cast<std::uint8_t>(text[at]);
  if (first < 0x80) return {Utf8::valid, 1, first};
  const Lead lead = lead_of(first);
  if (lead.bytes == 0) return {Utf8::invalid, 1, kReplacement};
  char32_t letter = first & (0x7FU >> lead.bytes);
  for (std::size_t n = 1; n < lead.bytes; ++n) {
    if (at + n == text.size()) return {Utf8::cut, n, kReplacement};
    const auto byte = static_cast<std::uint8_t>(text[at + n]);
    const bool fits =
        n == 1 ? byte >= lead.least && byte <= lead.most : byte >= 0x80 && byte <= 0xBF;
    if (!fits) return {Utf8::invalid, n, kReplacement};
    letter = letter << 6U | (byte & 0x3FU);
  }
  return {Utf8::valid, lead.bytes, letter};
}

void append_char(char32_t letter, std::string& out) {
  const auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (letter < 0x80) {
    put(letter);
  } else if (letter < 0x800) {
    put(0xC0U | letter >> 6U);
    put(0x80U | (letter & 0x3FU));
  } else if (letter < 0x10000) {
    put(0xE0U | letter >> 12U);
    put(0x80U | (letter >> 6U & 0x3FU));
    put(0x80U | (letter & 0x3FU));
  } else {
    put(0xF0U | letter >> 18U);
    put(0x80U | (letter >> 12U & 0x3FU));
    put(0x80U | (letter >> 6U & 0x3FU));
    put(0x80U | (letter & 0x3FU));
  }
}

std::string utf8_of(char32_t letter) {
  std::string out;
  append_char(letter, out);
  return out;
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<std::uint8_t>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const Utf8Step step = utf8_step(text, at);
    if (step.state != Utf8::valid) return false;
    at += step.bytes;
  }
  return true;
}

std::string repaired(std::string_view text) {
  Utf8Stream stream;
  std::string out = stream.feed(text);
  return out + stream.finish();
}

std::string Utf8Stream::feed(std::string_view bytes) {
  std::string joined;
  if (!held_.empty()) {
    joined = std::exchange(held_, {}).append(bytes);
    bytes = joined;
  }
  std::string out;
  for (std::size_t at = 0; at < bytes.size();) {
    const Utf8Step step = utf8_step(bytes, at);
    if (step.state == Utf8::cut) {
      held_ = bytes.substr(at);
      break;
    }
    if (step.state == Utf8::valid)
      out.append(bytes.substr(at, step.bytes));
    else
      append_char(kReplacement, out);
    at += step.bytes;
  }
  return out;
}

std::string Utf8Stream::finish() {
  if (held_.empty()) return {};
  held_.clear();
  return utf8_of(kReplacement);
}

}  // namespace t3d::tok
