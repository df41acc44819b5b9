// SentencePiece's precompiled map of characters: a double-array trie of what is replaced (Aoe 1989)
// and the texts that take its place, in one blob.
#include <optional>

#include "tokenizer/parts/base64.hpp"
#include "tokenizer/parts/normalizer.hpp"
#include "tokenizer/parts/unicode.hpp"
#include "tokenizer/parts/utf8.hpp"

namespace t3d::tok {
namespace {

class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(const JsonPart& part) {
    part.only({"type", "precompiled_charsmap"});
    const JsonPart map = part.at("precompiled_charsmap");
    const std::optional<std::string> blob = base64_bytes(map.text());
    if (!blob) map.fail("this is no base64");
    const auto word = [&](std::size_t at) {
      std::uint32_t value = 0;
      for (std::size_t n = 4; n-- > 0;)
        value = value << 8U | static_cast<std::uint8_t>((*blob)[at + n]);
      return value;
    };
    const std::size_t bytes = blob->size() < 4 ? 0 : word(0);
    if (bytes % 4 != 0 || bytes == 0 || bytes > blob->size() - 4)
      map.fail("no map of characters: {} bytes, {} of them the trie's", blob->size(), bytes);
    for (std::size_t at = 4; at < 4 + bytes; at += 4) trie_.push_back(word(at));
    texts_ = blob->substr(4 + bytes);
    if (!is_utf8(texts_)) map.fail("no map of characters: its texts are no UTF-8");
  }

  // Whole graphemes first, if they are short; then their characters. An ASCII character between two
  // others is a grapheme of its own.
  bool apply(std::string& text) const override {
    std::string out;
    out.reserve(text.size());
    const auto ascii = [&](std::size_t at) {
      return at >= text.size() || (text[at] != '\r' && static_cast<std::uint8_t>(text[at]) < 0x80);
    };
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = at;
      while (end < text.size() && ascii(end) && ascii(end + 1)) ++end;
      for (; at < end; ++at) replace_letter(std::string_view(text).substr(at, 1), out);
      while (end < text.size()) {
        const bool plain = ascii(end++);
        if (plain && ascii(end)) break;
      }
      replace_graphemes(std::string_view(text).substr(at, end - at), out);
      at = end;
    }
    text = std::move(out);
    return false;  // as tokenizers counts, also where the first character has no text in the map
  }

 private:
  static constexpr std::size_t kShortGrapheme = 5;  // bytes

  void replace_graphemes(std::string_view text, std::string& out) const {
    if (text.empty()) return;
    std::size_t begin = 0;
    for (const std::size_t end : grapheme_ends(text)) {
      const std::string_view grapheme = text.substr(begin, end - begin);
      begin = end;
      const auto whole = grapheme.size() <= kShortGrapheme ? replacement(grapheme) : std::nullopt;
      if (whole) {
        out += *whole;
        continue;
      }
      for (std::size_t at = 0; at < grapheme.size();) {
        const std::size_t from = at;
        next_char(grapheme, at);
        replace_letter(grapheme.substr(from, at - from), out);
      }
    }
  }
  void replace_letter(std::string_view letter, std::string& out) const {
    out += replacement(letter).value_or(letter);
  }

  // The shortest entry that begins `text` decides. Units of the trie: bit 8 a leaf follows, the
  // lowest byte the label (with bit 31), from bit 10 the offset, shifted by 8 if bit 9 is set.
  [[nodiscard]] std::optional<std::string_view> replacement(std::string_view text) const {
    const auto offset = [](std::uint32_t unit) { return (unit >> 10U) << ((unit & 0x200U) >> 6U); };
    std::uint32_t at = offset(trie_[0]);
    for (const char letter : text) {
      const auto byte = static_cast<std::uint8_t>(letter);
      at ^= byte;
      if (byte == 0 || at >= trie_.size()) return std::nullopt;
      const std::uint32_t unit = trie_[at];
      if ((unit & 0x800000FFU) != byte) return std::nullopt;
      at ^= offset(unit);
      if (at >= trie_.size()) return std::nullopt;
      if ((unit & 0x100U) != 0) return text_at(trie_[at] & 0x7FFFFFFFU);
    }
    return std::nullopt;
  }
  [[nodiscard]] std::optional<std::string_view> text_at(std::size_t at) const {
    if (at > texts_.size()) return std::nullopt;
    const std::string_view rest = std::string_view(texts_).substr(at);
    return rest.substr(0, rest.find('\0'));
  }

  std::vector<std::uint32_t> trie_;
  std::string texts_;  // each ends with a zero byte
};

}  // namespace

std::unique_ptr<Normalizer> make_precompiled(const JsonPart& part) {
  return std::make_unique<Precompiled>(part);
}

}  // namespace t3d::tok
