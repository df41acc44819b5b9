#include "tokenizer/parts/unicode.hpp"

#include <fmt/format.h>
#include <unicode/brkiter.h>
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>
#include <unicode/utext.h>

#include <algorithm>
#include <array>
#include <memory>

#include "core/error.hpp"
#include "tokenizer/parts/utf8.hpp"

namespace t3d::tok {
namespace {

void must(UErrorCode code, const char* what) {
  if (U_FAILURE(code)) throw_error(ExitCode::internal, "ICU: {}: {}", what, u_errorName(code));
}

UChar32 code_of(char32_t letter) { return static_cast<UChar32>(letter); }

std::uint32_t category(char32_t letter) { return U_GET_GC_MASK(code_of(letter)); }

bool is_older(char32_t letter, std::uint8_t version) {  // assigned in Unicode `version` or before
  UVersionInfo age;
  u_charAge(code_of(letter), age);
  return age[0] != 0 && (age[0] < version || (age[0] == version && age[1] == 0));
}

template <std::size_t n>
bool in(const std::array<char32_t, n>& list, char32_t letter) {
  return std::find(list.begin(), list.end(), letter) != list.end();
}

// Normal forms, applied to the characters of Unicode 9 only.
class Form {
 public:
  explicit Form(NormalForm form) {
    UErrorCode code = U_ZERO_ERROR;
    const icu::Normalizer2* all = nullptr;
    switch (form) {
      case NormalForm::nfc: all = icu::Normalizer2::getNFCInstance(code); break;
      case NormalForm::nfd: all = icu::Normalizer2::getNFDInstance(code); break;
      case NormalForm::nfkc: all = icu::Normalizer2::getNFKCInstance(code); break;
      case NormalForm::nfkd: all = icu::Normalizer2::getNFKDInstance(code); break;
    }
    must(code, "normal forms");
    old_ = std::make_unique<icu::UnicodeSet>(icu::UnicodeSet(u"[:age=9.0:]", code));
    must(code, "the characters of Unicode 9");
    old_->freeze();
    filtered_ = std::make_unique<icu::FilteredNormalizer2>(*all, *old_);
  }
  void apply(std::string& text) const {
    UErrorCode code = U_ZERO_ERROR;
    const icu::StringPiece source(text.data(), static_cast<std::int32_t>(text.size()));
    const bool done = filtered_->isNormalizedUTF8(source, code) != 0;
    must(code, "normal form");
    if (done) return;
    std::string out;
    out.reserve(text.size());
    icu::StringByteSink<std::string> sink(&out);
    filtered_->normalizeUTF8(0, source, sink, nullptr, code);
    must(code, "normal form");
    text = std::move(out);
  }

 private:
  std::unique_ptr<icu::UnicodeSet> old_;
  std::unique_ptr<icu::FilteredNormalizer2> filtered_;
};

}  // namespace

CharClasses::CharClasses() : table_(0x110000, CharClass::other) {
  const auto mark = [](const void* context, UChar32 begin, UChar32 end, UCharCategory type) {
    auto& table = *static_cast<std::vector<CharClass>*>(const_cast<void*>(context));
    const std::uint32_t mask = U_MASK(type);
    if ((mask & (U_GC_L_MASK | U_GC_N_MASK)) != 0)
      std::fill(table.begin() + begin, table.begin() + end,
                (mask & U_GC_L_MASK) != 0 ? CharClass::letter : CharClass::number);
    return static_cast<UBool>(1);
  };
  u_enumCharTypes(mark, &table_);
  for (char32_t letter = 0; letter <= 0x3000; ++letter)  // the last space of Unicode
    if (is_space(letter)) table_[letter] = CharClass::space;
}

const CharClasses& CharClasses::get() {
  static const CharClasses classes;
  return classes;
}

bool is_space(char32_t letter) { return u_isUWhiteSpace(code_of(letter)) != 0; }
bool is_number(char32_t letter) { return (category(letter) & U_GC_N_MASK) != 0; }

bool is_word_char(char32_t letter) {
  return u_isUAlphabetic(code_of(letter)) != 0 ||
         (category(letter) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0 ||
         letter == 0x200C || letter == 0x200D;
}

// A few characters have changed their category since.
bool is_mark(char32_t letter) {
  static constexpr std::array<char32_t, 2> were{0x1CF2, 0x1CF3};
  static constexpr std::array<char32_t, 1> became{0x111C9};
  if (in(were, letter)) return true;
  return (category(letter) & U_GC_M_MASK) != 0 && is_older(letter, 9) && !in(became, letter);
}

bool is_punctuation(char32_t letter) {
  static constexpr std::array<char32_t, 2> were{0x166D, 0x111C9};
  if (letter < 0x80) return (category(letter) & (U_GC_P_MASK | U_GC_S_MASK)) != 0;
  if (in(were, letter)) return true;
  return (category(letter) & U_GC_P_MASK) != 0 && is_older(letter, 8);
}

bool is_bert_control(char32_t letter) {
  if (letter == '\t' || letter == '\n' || letter == '\r') return false;
  return (category(letter) & (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK)) != 0 &&
         is_older(letter, 8);
}

bool is_bert_mark(char32_t letter) {
  static constexpr std::array<char32_t, 1> were{0x1734};
  static constexpr std::array<char32_t, 4> became{0x1885, 0x1886, 0xA9BD, 0x111C9};
  if (in(were, letter)) return true;
  return (category(letter) & U_GC_MN_MASK) != 0 && is_older(letter, 8) && !in(became, letter);
}

void lower_case(std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char32_t letter = next_char(text, at);
    if (letter == 0x130)  // the one letter whose small form is two characters
      out += "i\xCC\x87";
    else
      append_char(static_cast<char32_t>(u_tolower(code_of(letter))), out);
  }
  text = std::move(out);
}

void to_normal_form(NormalForm form, std::string& text) {
  static const std::array<Form, 4> forms{Form(NormalForm::nfc), Form(NormalForm::nfd),
                                         Form(NormalForm::nfkc), Form(NormalForm::nfkd)};
  const auto wide = [](char letter) { return (static_cast<std::uint8_t>(letter) & 0x80U) != 0; };
  if (std::any_of(text.begin(), text.end(), wide))
    forms[static_cast<std::size_t>(form)].apply(text);
}

std::string unicode_version() {
  UVersionInfo version;
  u_getUnicodeVersion(version);
  return fmt::format("{}.{}", version[0], version[1]);
}

UnknownCharacters unknown_characters(std::string_view text) {
  UnknownCharacters unknown;
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<std::uint8_t>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const char32_t letter = next_char(text, at);
    if ((category(letter) & U_GC_CN_MASK) == 0 ||
        u_hasBinaryProperty(code_of(letter), UCHAR_NONCHARACTER_CODE_POINT) != 0)
      continue;
    if (unknown.count++ == 0) unknown.first = letter;
  }
  return unknown;
}

std::vector<std::size_t> grapheme_ends(std::string_view text) {
  static const std::unique_ptr<icu::BreakIterator> original = [] {
    UErrorCode code = U_ZERO_ERROR;
    std::unique_ptr<icu::BreakIterator> made(
        icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), code));
    must(code, "grapheme clusters");
    return made;
  }();
  const std::unique_ptr<icu::BreakIterator> breaks(original->clone());
  UErrorCode code = U_ZERO_ERROR;
  UText source = UTEXT_INITIALIZER;
  utext_openUTF8(&source, text.data(), static_cast<std::int64_t>(text.size()), &code);
  must(code, "grapheme clusters");
  breaks->setText(&source, code);
  utext_close(&source);
  must(code, "grapheme clusters");
  std::vector<std::size_t> ends;
  breaks->first();
  for (auto end = breaks->next(); end != icu::BreakIterator::DONE; end = breaks->next())
    ends.push_back(static_cast<std::size_t>(end));
  return ends;
}

}  // namespace t3d::tok
