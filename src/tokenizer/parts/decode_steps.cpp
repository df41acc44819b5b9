#include <array>
#include <charconv>
#include <utility>

#include "tokenizer/parts/byte_level.hpp"
#include "tokenizer/parts/decoder.hpp"
#include "tokenizer/parts/pattern_part.hpp"
#include "tokenizer/parts/utf8.hpp"

namespace t3d::tok {
namespace {

using MakeStep = std::function<std::unique_ptr<DecodeStep>()>;

/// Makes one token of what is to come.
class OneToken : public DecodeStep {
 public:
  void finish() override {
    if (begun_) give("", false, true);
  }

 protected:
  void more(std::string_view text) { give(text, !std::exchange(begun_, true), false); }

 private:
  bool begun_ = false;
};

class Fuse final : public OneToken {
 public:
  void put(std::string_view text, bool, bool) override { more(text); }
};

// Letters of bytes, where a token has no others; bytes of all tokens make characters together.
class ByteLevelStep final : public OneToken {
 public:
  void put(std::string_view text, bool begins, bool ends) override {
    if (begins) token_.clear();
    token_ += text;
    if (!ends) return;
    std::string bytes;
    more(stream_.feed(append_bytes(token_, bytes) ? bytes : token_));
  }
  void finish() override {
    more(stream_.finish());
    OneToken::finish();
  }

 private:
  std::string token_;
  Utf8Stream stream_;
};

// <0x0A>: a run of such tokens is a text when all its bytes are, else as many U+FFFD.
class ByteFallback final : public WholeTokens {
 public:
  void finish() override { flush(); }

 protected:
  void token(std::string text) override {
    if (const int byte = byte_of(text); byte >= 0) {
      bytes_.push_back(static_cast<char>(byte));
      return;
    }
    flush();
    give(text);
  }

 private:
  static int byte_of(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return -1;
    const char* digits = token.data() + (token[3] == '+' ? 4 : 3);  // "+A" is a number, too
    int byte = 0;
    const auto [end, error] = std::from_chars(digits, token.data() + 5, byte, 16);
    return error == std::errc{} && end == token.data() + 5 && byte >= 0 ? byte : -1;
  }
  void flush() {
    const std::string bytes = std::exchange(bytes_, {});
    if (bytes.empty()) return;
    if (is_utf8(bytes)) return give(bytes);
    for (std::size_t n = 0; n < bytes.size(); ++n) give(utf8_of(kReplacement));
  }
  std::string bytes_;
};

class Metaspace final : public DecodeStep {
 public:
  Metaspace(std::string mark, bool drop_first) : mark_(std::move(mark)), drop_(drop_first) {}
  void put(std::string_view text, bool begins, bool ends) override {
    if (begins) ++count_;
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      if (!text.substr(at).starts_with(mark_)) {
        out.push_back(text[at++]);
        continue;
      }
      if (!(drop_ && count_ == 1)) out.push_back(' ');
      at += mark_.size();
    }
    give(out, begins, ends);
  }

 private:
  std::string mark_;
  bool drop_;      // no space before the text
  int count_ = 0;  // tokens begun, up to 2 matter
};

// Replaces `old`, wherever it is, by `with`.
void replace_all(std::string& text, std::string_view old, std::string_view with) {
  for (std::size_t at = text.find(old); at != std::string::npos; at = text.find(old, at)) {
    text.replace(at, old.size(), with);
    at += with.size();
  }
}

class WordPieceStep final : public WholeTokens {
 public:
  WordPieceStep(std::string prefix, bool cleanup) : prefix_(std::move(prefix)), clean_(cleanup) {}

 protected:
  void token(std::string text) override {
    if (!std::exchange(first_, false)) {
      if (text.starts_with(prefix_))
        text.erase(0, prefix_.size());
      else
        text.insert(0, " ");
    }
    if (clean_)
      for (const auto& [old, with] : kClean) replace_all(text, old, with);
    give(text);
  }

 private:
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kClean{
      {{" .", "."},
       {" ?", "?"},
       {" !", "!"},
       {" ,", ","},
       {" ' ", "'"},
       {" n't", "n't"},
       {" 'm", "'m"},
       {" do not", " don't"},
       {" 's", "'s"},
       {" 've", "'ve"},
       {" 're", "'re"}}};
  std::string prefix_;
  bool clean_, first_ = true;
};

class StripFront final : public DecodeStep {
 public:
  StripFront(std::string letter, std::int64_t most) : letter_(std::move(letter)), most_(most) {}
  void put(std::string_view text, bool begins, bool ends) override {
    if (begins) left_ = most_;
    while (left_ > 0 && text.starts_with(letter_)) {
      text.remove_prefix(letter_.size());
      --left_;
    }
    if (!text.empty()) left_ = 0;
    give(text, begins, ends);
  }

 private:
  std::string letter_;
  std::int64_t most_, left_ = 0;
};

class StripBack final : public WholeTokens {
 public:
  StripBack(std::string letter, std::int64_t most) : letter_(std::move(letter)), most_(most) {}

 protected:
  void token(std::string text) override {
    for (std::int64_t n = 0; n < most_ && text.ends_with(letter_); ++n)
      text.resize(text.size() - letter_.size());
    give(text);
  }

 private:
  std::string letter_;
  std::int64_t most_;
};

class ReplaceStep final : public WholeTokens {
 public:
  ReplaceStep(std::shared_ptr<const Pattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

 protected:
  void token(std::string text) override { give(pattern_->replaced(text, content_)); }

 private:
  std::shared_ptr<const Pattern> pattern_;
  std::string content_;
};

// The suffix of a word's last token is a space; behind the last word there is none.
class SuffixStep final : public WholeTokens {
 public:
  explicit SuffixStep(std::string suffix) : suffix_(std::move(suffix)) {}
  void finish() override {
    if (held_) give_with("");
  }

 protected:
  void token(std::string text) override {
    if (held_) give_with(" ");
    held_ = std::move(text);
  }

 private:
  void give_with(std::string_view space) {
    std::string text = *std::exchange(held_, std::nullopt);
    replace_all(text, suffix_, space);
    give(text);
  }
  std::string suffix_;
  std::optional<std::string> held_;
};

MakeStep make_strip(const JsonPart& part) {
  part.only({"type", "content", "start", "stop"});
  const std::string letter = utf8_of(part.at("content").letter());
  const std::int64_t start = part.at("start").count(), stop = part.at("stop").count();
  if (start > 0 && stop > 0) part.fail("stripping both ends at once is not known here");
  if (stop > 0) return [letter, stop] { return std::make_unique<StripBack>(letter, stop); };
  return [letter, start] { return std::make_unique<StripFront>(letter, start); };
}

}  // namespace

MakeStep make_decode_step(const JsonPart& part) {
  const std::string type = part.type();
  if (type == "ByteLevel") {
    part.only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    return [] { return std::make_unique<ByteLevelStep>(); };
  }
  if (type == "ByteFallback" || type == "Fuse") {
    part.only({"type"});
    if (type == "Fuse") return [] { return std::make_unique<Fuse>(); };
    return [] { return std::make_unique<ByteFallback>(); };
  }
  if (type == "Metaspace") {
    part.only({"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
    const bool drop = part.text_or("prepend_scheme", "always") != "never" &&
                      part.flag_or("add_prefix_space", true);
    return [mark = utf8_of(part.at("replacement").letter()), drop] {
      return std::make_unique<Metaspace>(mark, drop);
    };
  }
  if (type == "WordPiece") {
    part.only({"type", "prefix", "cleanup"});
    return [prefix = part.text("prefix"), cleanup = part.flag("cleanup")] {
      return std::make_unique<WordPieceStep>(prefix, cleanup);
    };
  }
  if (type == "Strip") return make_strip(part);
  if (type == "Replace") {
    part.only({"type", "pattern", "content"});
    auto pattern = std::make_shared<const Pattern>(pattern_part(part.at("pattern")));
    return [pattern, content = part.text("content")] {
      return std::make_unique<ReplaceStep>(pattern, content);
    };
  }
  if (type == "BPEDecoder") {
    part.only({"type", "suffix"});
    const std::string suffix = part.text("suffix");
    if (suffix.empty()) part.at("suffix").fail("it is empty");
    return [suffix] { return std::make_unique<SuffixStep>(suffix); };
  }
  part.fail("decoders of type {} are not known here", in_quotes(type));
}

}  // namespace t3d::tok
