#include "tokenizer/parts/pre_tokenizer.hpp"

#include <functional>

#include "tokenizer/parts/byte_level.hpp"
#include "tokenizer/parts/pattern_part.hpp"
#include "tokenizer/parts/split.hpp"
#include "tokenizer/parts/utf8.hpp"

namespace t3d::tok {
namespace {

using Spans = std::vector<Span>;

/// Changes each piece, then cuts it.
class Cutter final : public PreTokenizer {
 public:
  using Change = std::function<void(Piece&)>;
  using Cut = std::function<Spans(std::string_view)>;
  Cutter(Change change, Cut cut) : change_(std::move(change)), cut_(std::move(cut)) {}
  explicit Cutter(Cut cut) : cut_(std::move(cut)) {}

  void split(std::vector<Piece>& pieces) const override {
    std::vector<Piece> out;
    out.reserve(pieces.size());
    for (Piece& piece : pieces) {
      if (change_) change_(piece);
      if (!cut_) {
        out.push_back(std::move(piece));
        continue;
      }
      for (const Span& span : cut_(piece.text))
        if (span.begin != span.end)
          out.push_back({piece.text.substr(span.begin, span.end - span.begin),
                         piece.first && span.begin == 0});
    }
    pieces = std::move(out);
  }

 private:
  Change change_;
  Cut cut_;
};

class Sequence final : public PreTokenizer {
 public:
  explicit Sequence(const JsonPart& part) {
    part.only({"type", "pretokenizers"});
    for (const JsonPart& step : part.list("pretokenizers"))
      steps_.push_back(make_pre_tokenizer(step));
  }
  void split(std::vector<Piece>& pieces) const override {
    for (const auto& step : steps_) step->split(pieces);
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

std::unique_ptr<PreTokenizer> cutter(Cutter::Cut cut) {
  return std::make_unique<Cutter>(std::move(cut));
}

/// Each character that `has` what counts is a match.
template <class Has>
Spans letter_spans(std::string_view text, const Has& has) {
  Spans spans;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t from = at;
    if (!has(next_char(text, at))) continue;
    if (begin != from) spans.push_back({begin, from, false});
    spans.push_back({from, at, true});
    begin = at;
  }
  if (begin != text.size()) spans.push_back({begin, text.size(), false});
  return spans;
}

template <class Has>
std::unique_ptr<PreTokenizer> letter_cutter(Has has, SplitBehavior behavior) {
  return cutter([has, behavior](std::string_view text) {
    return split_spans(letter_spans(text, has), behavior);
  });
}

Spans words_of(const WordScanner& scanner, std::string_view text) {
  Spans spans;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = scanner.word_end(text, at);
    spans.push_back({at, end, true});
    at = end;
  }
  return spans;
}

struct ByteLevelOptions {
  bool add_space, use_pattern;
};
ByteLevelOptions byte_level_options(const JsonPart& part) {
  part.only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  return {part.flag("add_prefix_space"), part.flag_or("use_regex", true)};
}

std::unique_ptr<PreTokenizer> make_byte_level(const JsonPart& part) {
  const ByteLevelOptions options = byte_level_options(part);
  const auto letters = [](std::string_view text) {
    std::string out;
    append_letters(text, out);
    return out;
  };
  const auto change = [options](Piece& piece) {
    if (options.add_space && !piece.text.starts_with(' ')) piece.text.insert(0, " ");
  };
  const auto turn = [letters](Piece& piece) { piece.text = letters(piece.text); };
  if (!options.use_pattern)
    return std::make_unique<Cutter>(
        [change, turn](Piece& piece) {
          change(piece);
          turn(piece);
        },
        nullptr);
  class Words final : public PreTokenizer {
   public:
    explicit Words(std::function<void(Piece&)> before, std::function<void(Piece&)> after)
        : cut_(std::move(before), [scanner = WordScanner(WordPattern::gpt2)](
                                      std::string_view text) { return words_of(scanner, text); }),
          letters_(std::move(after), nullptr) {}
    void split(std::vector<Piece>& pieces) const override {
      cut_.split(pieces);
      letters_.split(pieces);
    }

   private:
    Cutter cut_, letters_;
  };
  return std::make_unique<Words>(change, turn);
}

std::unique_ptr<PreTokenizer> make_split(const JsonPart& part) {
  part.only({"type", "pattern", "behavior", "invert"});
  const SplitBehavior behavior = split_behavior(part.at("behavior"));
  const bool invert = part.flag("invert");
  auto pattern = std::make_shared<Pattern>(pattern_part(part.at("pattern")));
  return cutter([pattern, behavior, invert](std::string_view text) {
    Spans spans = pattern->spans(text);
    for (Span& span : spans) span.match ^= invert;
    return split_spans(spans, behavior);
  });
}

enum class Prepend : std::uint8_t { never, first, always };

Prepend prepend_of(const JsonPart& part) {
  const std::string scheme = part.text_or("prepend_scheme", "always");
  // Files of before there was a scheme have a flag.
  if (!part.flag_or("add_prefix_space", true)) {
    if (scheme == "first") part.fail("prepend_scheme and add_prefix_space contradict each other");
    return Prepend::never;
  }
  if (scheme == "always") return Prepend::always;
  if (scheme == "first") return Prepend::first;
  if (scheme == "never") return Prepend::never;
  part.at("prepend_scheme").fail("{} is not known here", in_quotes(scheme));
}

std::unique_ptr<PreTokenizer> make_metaspace(const JsonPart& part) {
  part.only({"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
  const char32_t letter = part.at("replacement").letter();
  const Prepend prepend = prepend_of(part);
  const auto change = [prepend, mark = utf8_of(letter)](Piece& piece) {
    std::string out;
    out.reserve(piece.text.size() + piece.text.size() / 4);
    for (const char byte : piece.text) byte == ' ' ? out += mark : out += byte;
    const bool wanted = prepend == Prepend::always || (prepend == Prepend::first && piece.first);
    if (wanted && !out.starts_with(mark)) out.insert(0, mark);
    piece.text = std::move(out);
  };
  if (!part.flag_or("split", true)) return std::make_unique<Cutter>(change, nullptr);
  return std::make_unique<Cutter>(change, [letter](std::string_view text) {
    return split_spans(letter_spans(text, [letter](char32_t other) { return other == letter; }),
                       SplitBehavior::with_next);
  });
}

// Words, runs of symbols, and nothing of white space.
std::unique_ptr<PreTokenizer> make_whitespace(const JsonPart& part) {
  part.only({"type"});
  enum class Kind : std::uint8_t { space, word, symbol };
  return cutter([](std::string_view text) {
    Spans spans;
    Kind before = Kind::space;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t from = at;
      const char32_t letter = next_char(text, at);
      const Kind kind = is_word_char(letter) ? Kind::word
                        : is_space(letter)   ? Kind::space
                                             : Kind::symbol;
      if (kind != Kind::space && kind == before)
        spans.back().end = at;
      else if (kind != Kind::space)
        spans.push_back({from, at, true});
      before = kind;
    }
    return spans;
  });
}

std::unique_ptr<PreTokenizer> make_bert(const JsonPart& part) {
  part.only({"type"});
  return cutter([](std::string_view text) {
    Spans spans;
    bool open = false;  // the last span is a word that may go on
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t from = at;
      const char32_t letter = next_char(text, at);
      const bool alone = is_punctuation(letter);
      const bool part_of_word = !alone && !is_space(letter);
      if (part_of_word && open)
        spans.back().end = at;
      else if (part_of_word || alone)
        spans.push_back({from, at, true});
      open = part_of_word;
    }
    return spans;
  });
}

std::unique_ptr<PreTokenizer> make_digits(const JsonPart& part) {
  part.only({"type", "individual_digits"});
  return letter_cutter(is_number, part.flag("individual_digits") ? SplitBehavior::isolated
                                                                 : SplitBehavior::contiguous);
}

std::unique_ptr<PreTokenizer> make_punctuation(const JsonPart& part) {
  part.only({"type", "behavior"});
  return letter_cutter(is_punctuation, part.has("behavior") ? split_behavior(part.at("behavior"))
                                                            : SplitBehavior::isolated);
}

}  // namespace

std::unique_ptr<PreTokenizer> make_pre_tokenizer(const JsonPart& part) {
  const std::string type = part.type();
  if (type == "Sequence") return std::make_unique<Sequence>(part);
  if (type == "ByteLevel") return make_byte_level(part);
  if (type == "Split") return make_split(part);
  if (type == "Metaspace") return make_metaspace(part);
  if (type == "Whitespace") return make_whitespace(part);
  if (type == "WhitespaceSplit") {
    part.only({"type"});
    return letter_cutter(is_space, SplitBehavior::removed);
  }
  if (type == "Digits") return make_digits(part);
  if (type == "Punctuation") return make_punctuation(part);
  if (type == "BertPreTokenizer") return make_bert(part);
  if (type == "CharDelimiterSplit") {
    part.only({"type", "delimiter"});
    const char32_t delimiter = part.at("delimiter").letter();
    return letter_cutter([delimiter](char32_t letter) { return letter == delimiter; },
                         SplitBehavior::removed);
  }
  part.fail("pre-tokenizers of type {} are not known here", in_quotes(type));
}

std::optional<ByteWords> byte_words_of(const JsonPart& part) {
  if (part.type() == "ByteLevel") {
    const ByteLevelOptions options = byte_level_options(part);
    if (options.use_pattern) return ByteWords{WordPattern::gpt2, options.add_space};
    return std::nullopt;
  }
  if (part.type() != "Sequence") return std::nullopt;
  const auto steps = part.list("pretokenizers");
  if (steps.size() != 2 || steps[0].type() != "Split" || steps[1].type() != "ByteLevel")
    return std::nullopt;
  const JsonPart& split = steps[0];
  const ByteLevelOptions options = byte_level_options(steps[1]);
  if (options.use_pattern || options.add_space || !split.at("pattern").has("Regex") ||
      split.text("behavior") != "Isolated" || split.flag("invert"))
    return std::nullopt;
  const auto pattern = pattern_of(split.at("pattern").text("Regex"));
  return pattern ? std::optional(ByteWords{*pattern, false}) : std::nullopt;
}

}  // namespace t3d::tok
