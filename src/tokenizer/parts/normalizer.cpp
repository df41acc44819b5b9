#include "tokenizer/parts/normalizer.hpp"

#include <functional>

#include "tokenizer/parts/byte_level.hpp"
#include "tokenizer/parts/pattern_part.hpp"
#include "tokenizer/parts/unicode.hpp"
#include "tokenizer/parts/utf8.hpp"

namespace t3d::tok {
namespace {

/// A function with whatever it holds; what it returns is apply()'s.
class Simple final : public Normalizer {
 public:
  explicit Simple(std::function<bool(std::string&)> change) : change_(std::move(change)) {}
  bool apply(std::string& text) const override { return change_(text); }

 private:
  std::function<bool(std::string&)> change_;
};

std::unique_ptr<Normalizer> simple(std::function<bool(std::string&)> change) {
  return std::make_unique<Simple>(std::move(change));
}

/// Of a function that removes nothing.
template <class Change>
std::unique_ptr<Normalizer> keeping(const Change& change) {
  return simple([change](std::string& text) {
    change(text);
    return false;
  });
}

std::unique_ptr<Normalizer> make_sequence(const JsonPart& part) {
  part.only({"type", "normalizers"});
  auto steps = std::make_shared<std::vector<std::unique_ptr<Normalizer>>>();
  for (const JsonPart& step : part.list("normalizers")) steps->push_back(make_normalizer(step));
  return simple([steps](std::string& text) {
    bool first_gone = false;
    for (const auto& step : *steps) first_gone |= step->apply(text);
    return first_gone;
  });
}

std::unique_ptr<Normalizer> make_form(const JsonPart& part, NormalForm form) {
  part.only({"type"});
  return keeping([form](std::string& text) { to_normal_form(form, text); });
}

/// keep(letter) says which character stays, as which one; 0 = none.
template <class Keep>
std::unique_ptr<Normalizer> per_letter(const Keep& keep) {
  return simple([keep](std::string& text) {
    std::string out;
    out.reserve(text.size());
    bool first_gone = false;
    for (std::size_t at = 0; at < text.size();) {
      const bool first = at == 0;
      const char32_t letter = next_char(text, at), kept = keep(letter);
      const bool gone = kept == 0 && letter != 0;
      if (!gone) append_char(kept, out);
      first_gone |= first && gone;
    }
    text = std::move(out);
    return first_gone;
  });
}

std::unique_ptr<Normalizer> make_strip(const JsonPart& part) {
  part.only({"type", "strip_left", "strip_right"});
  const bool left = part.flag("strip_left"), right = part.flag("strip_right");
  return simple([left, right](std::string& text) {
    std::size_t begin = 0, end = text.size();
    for (std::size_t next = 0; left && next < end && is_space(next_char(text, next));) begin = next;
    while (right && end > begin) {
      std::size_t last = end - bytes_before(text, end), at = last;
      if (!is_space(next_char(text, at))) break;
      end = last;
    }
    text = text.substr(begin, end - begin);
    return begin > 0;
  });
}

std::unique_ptr<Normalizer> make_prepend(const JsonPart& part) {
  part.only({"type", "prepend"});
  return keeping([front = part.text("prepend")](std::string& text) {
    if (!text.empty()) text.insert(0, front);
  });
}

std::unique_ptr<Normalizer> make_replace(const JsonPart& part) {
  part.only({"type", "pattern", "content"});
  auto pattern = std::make_shared<Pattern>(pattern_part(part.at("pattern")));
  return simple([pattern, content = part.text("content")](std::string& text) {
    const std::vector<Span> spans = pattern->spans(text);
    std::string out;
    for (const Span& span : spans)
      out += span.match ? content : text.substr(span.begin, span.end - span.begin);
    text = std::move(out);
    return content.empty() && spans.front().match && spans.front().end > 0;
  });
}

// Of machine translation: controls go, other white space becomes a space.
char32_t nmt_letter(char32_t letter) {
  const auto within = [letter](char32_t first, char32_t last) {
    return letter >= first && letter <= last;
  };
  if (letter == '\t' || letter == '\n' || letter == '\f' || letter == '\r') return ' ';
  if (within(0x01, 0x1F) || letter == 0x7F || letter == 0x8F || letter == 0x9F) return 0;
  const bool space = letter == 0x1680 || within(0x200B, 0x200F) || within(0x2028, 0x2029) ||
                     letter == 0x2581 || letter == 0xFEFF || letter == 0xFFFD;
  return space ? U' ' : letter;
}

std::unique_ptr<Normalizer> make_byte_level(const JsonPart& part) {
  part.only({"type"});
  return keeping([](std::string& text) {
    std::string letters;
    append_letters(text, letters);
    text = std::move(letters);
  });
}

}  // namespace

std::unique_ptr<Normalizer> make_normalizer(const JsonPart& part) {
  const std::string type = part.type();
  if (type == "Sequence") return make_sequence(part);
  if (type == "NFC") return make_form(part, NormalForm::nfc);
  if (type == "NFD") return make_form(part, NormalForm::nfd);
  if (type == "NFKC") return make_form(part, NormalForm::nfkc);
  if (type == "NFKD") return make_form(part, NormalForm::nfkd);
  if (type == "Lowercase") {
    part.only({"type"});
    return keeping(lower_case);
  }
  if (type == "StripAccents") {
    part.only({"type"});
    return per_letter([](char32_t letter) { return is_mark(letter) ? 0 : letter; });
  }
  if (type == "Strip") return make_strip(part);
  if (type == "Prepend") return make_prepend(part);
  if (type == "Replace") return make_replace(part);
  if (type == "BertNormalizer") return make_bert_normalizer(part);
  if (type == "Precompiled") return make_precompiled(part);
  if (type == "Nmt") {
    part.only({"type"});
    return per_letter(nmt_letter);
  }
  if (type == "ByteLevel") return make_byte_level(part);
  part.fail("normalizers of type {} are not known here", in_quotes(type));
}

}  // namespace t3d::tok
