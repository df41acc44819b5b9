// BERT's way to clean a text: no controls, every white space a space, Chinese characters as words
// of their own, no accents, small letters.
#include "tokenizer/parts/normalizer.hpp"
#include "tokenizer/parts/unicode.hpp"
#include "tokenizer/parts/utf8.hpp"

namespace t3d::tok {
namespace {

bool is_chinese(char32_t letter) {
  const auto within = [letter](char32_t first, char32_t last) {
    return letter >= first && letter <= last;
  };
  return within(0x4E00, 0x9FFF) || within(0x3400, 0x4DBF) || within(0x20000, 0x2A6DF) ||
         within(0x2A700, 0x2B73F) || within(0x2B740, 0x2B81F) || within(0x2B920, 0x2CEAF) ||
         within(0xF900, 0xFAFF) || within(0x2F800, 0x2FA1F);
}

class BertNormalizer final : public Normalizer {
 public:
  explicit BertNormalizer(const JsonPart& part)
      : clean_(part.flag("clean_text")),
        chinese_(part.flag("handle_chinese_chars")),
        lower_(part.flag("lowercase")),
        accents_(part.flag_or("strip_accents", lower_)) {
    part.only({"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  }
  bool apply(std::string& text) const override {
    bool first_gone = (clean_ || chinese_) && clean(text);
    if (accents_) first_gone |= strip_accents(text);
    if (lower_) lower_case(text);
    return first_gone;
  }

 private:
  bool clean(std::string& text) const {
    std::string out;
    out.reserve(text.size());
    bool first_gone = false;
    for (std::size_t at = 0; at < text.size();) {
      const bool first = at == 0;
      const char32_t letter = next_char(text, at);
      if (clean_ && (letter == 0 || letter == kReplacement || is_bert_control(letter))) {
        first_gone |= first;
        continue;
      }
      if (clean_ && is_space(letter)) {
        out.push_back(' ');
      } else if (chinese_ && is_chinese(letter)) {
        out.push_back(' ');
        append_char(letter, out);
        out.push_back(' ');
      } else {
        append_char(letter, out);
      }
    }
    text = std::move(out);
    return first_gone;
  }
  static bool strip_accents(std::string& text) {
    to_normal_form(NormalForm::nfd, text);
    std::string out;
    out.reserve(text.size());
    bool first_gone = false;
    for (std::size_t at = 0; at < text.size();) {
      const bool first = at == 0;
      const char32_t letter = next_char(text, at);
      if (!is_bert_mark(letter))
        append_char(letter, out);
      else
        first_gone |= first;
    }
    text = std::move(out);
    return first_gone;
  }

  bool clean_, chinese_, lower_, accents_;
};

}  // namespace

std::unique_ptr<Normalizer> make_bert_normalizer(const JsonPart& part) {
  return std::make_unique<BertNormalizer>(part);
}

}  // namespace t3d::tok
