#include "tokenizer/tiktoken.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <optional>

#include "core/error.hpp"
#include "tokenizer/parts/base64.hpp"
#include "tokenizer/parts/json_part.hpp"
#include "tokenizer/parts/merges.hpp"
#include "tokenizer/parts/utf8.hpp"
#include "tokenizer/parts/vocabulary.hpp"
#include "tokenizer/parts/word_cache.hpp"
#include "tokenizer/parts/word_pattern.hpp"
#include "tokenizer/special_names.hpp"
#include "tokenizer/tokenizer.hpp"

namespace t3d {
namespace {

using Ids = std::vector<std::int32_t>;

constexpr std::string_view kPatternLine = "# pattern ";

std::vector<std::string> llama3_specials() {
  std::vector<std::string> names{"<|begin_of_text|>",
                                 "<|end_of_text|>",
                                 "<|reserved_special_token_0|>",
                                 "<|reserved_special_token_1|>",
                                 "<|reserved_special_token_2|>",
                                 "<|reserved_special_token_3|>",
                                 "<|start_header_id|>",
                                 "<|end_header_id|>",
                                 "<|reserved_special_token_4|>",
                                 "<|eot_id|>"};
  for (int n = 5; names.size() < 256; ++n)
    names.push_back(fmt::format("<|reserved_special_token_{}|>", n));
  return names;
}

std::vector<std::string> cl100k_specials() {
  std::vector<std::string> names{"", "<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>",
                                 "<|fim_suffix|>"};
  names.resize(20);
  names.emplace_back("<|endofprompt|>");
  return names;
}

struct Known {
  std::string_view name;
  index_t ranks;  // of the file that everybody has
  tok::WordPattern pattern;
  std::vector<std::string> specials;  // ids behind the ranks; "" = an id without a token
};

const std::array<Known, 4>& known_patterns() {
  static const std::array<Known, 4> known{
      Known{"gpt2", 50256, tok::WordPattern::gpt2, {"<|endoftext|>"}},
      Known{"cl100k", 100256, tok::WordPattern::llama3, cl100k_specials()},
      Known{"llama3", 128000, tok::WordPattern::llama3, llama3_specials()},
      Known{"qwen2",
            151643,
            tok::WordPattern::qwen2,
            {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}}};
  return known;
}

struct Ranks {
  tok::Vocabulary vocabulary;  // tokens are bytes
  const Known* known = nullptr;
};

/// Line by line, without its end; false ends it.
template <class Use>
void each_line(std::string_view text, const Use& use) {
  for (index_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!use(line, number)) return;
  }
}

struct Rank {
  std::string token;
  std::int32_t rank;
};
std::optional<Rank> rank_of(std::string_view line) {
  const std::size_t gap = line.find(' ');
  if (gap == std::string_view::npos || gap == 0) return std::nullopt;
  auto token = tok::base64_bytes(line.substr(0, gap));
  std::int64_t rank = 0;
  const char* end = line.data() + line.size();
  const auto [stop, error] = std::from_chars(line.data() + gap + 1, end, rank);
  if (!token || token->empty() || error != std::errc{} || stop != end || rank < 0 ||
      rank > tok::kMaxId)
    return std::nullopt;
  return Rank{*std::move(token), static_cast<std::int32_t>(rank)};
}

std::string names_of_patterns() {
  std::string names;
  for (const Known& known : known_patterns())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
  return names;
}

const Known* pattern_named(std::string_view name) {
  for (const Known& known : known_patterns())
    if (known.name == name) return &known;
  throw_error(ExitCode::io, "line 1: pattern {} is none of {}", tok::in_quotes(name),
              names_of_patterns());
}

Ranks read_ranks(std::string_view text) {
  Ranks ranks;
  each_line(text, [&](std::string_view line, index_t number) {
    if (number == 1 && line.starts_with(kPatternLine)) {
      ranks.known = pattern_named(line.substr(kPatternLine.size()));
      return true;
    }
    if (line.empty()) return true;
    const auto entry = rank_of(line);
    if (!entry) throw_error(ExitCode::io, "line {}: not a token in base64 and its rank", number);
    if (!ranks.vocabulary.add(entry->token, entry->rank))
      throw_error(ExitCode::io, "line {}: this token or its rank {} came before", number,
                  entry->rank);
    return true;
  });
  for (const Known& known : known_patterns())
    if (ranks.known == nullptr && known.ranks == ranks.vocabulary.size()) ranks.known = &known;
  if (ranks.known == nullptr)
    throw_error(
        ExitCode::io,
        "no file of ranks that is known has {} of them: begin the file with a line \"{}NAME\", "
        "NAME one of {}",
        ranks.vocabulary.size(), kPatternLine, names_of_patterns());
  for (int byte = 0; byte < 256; ++byte)
    if (ranks.vocabulary.id(std::string(1, static_cast<char>(byte))) < 0)
      throw_error(ExitCode::io, "byte {} has no rank", byte);
  return ranks;
}

// Two neighbours merge when they are a token together; its rank says when.
tok::Merges merges_of(const tok::Vocabulary& vocabulary) {
  tok::Merges merges;
  for (const auto& [token, id] : vocabulary.ids())
    for (std::size_t cut = 1; cut < token.size(); ++cut) {
      const std::string_view whole = token;
      const std::int32_t left = vocabulary.id(whole.substr(0, cut));
      const std::int32_t right = left < 0 ? -1 : vocabulary.id(whole.substr(cut));
      if (right >= 0) merges.add(left, right, id, id);
    }
  return merges;
}

class Tiktoken final : public Tokenizer {
 public:
  explicit Tiktoken(const std::string& model)
      : model_(model),
        ranks_(read_ranks(model)),
        merges_(merges_of(ranks_.vocabulary)),
        scanner_(ranks_.known->pattern),
        specials_begin_(ranks_.vocabulary.end()) {}

  Ids encode(std::string_view text) const override {
    Ids ids;
    const auto cache = caches_.borrow();
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = scanner_.word_end(text, at);
      add_word(text.substr(at, end - at), *cache, ids);
      at = end;
    }
    return ids;
  }
  /// Llama 3's own program puts its begin of a text before every text.
  Ids encode_document(std::string_view text) const override {
    Ids ids = encode(text);
    if (const std::int32_t bos = named(kBosNames); bos >= 0) ids.insert(ids.begin(), bos);
    return ids;
  }
  std::unique_ptr<TextStream> stream(Specials specials) const override {
    class Stream final : public TextStream {
     public:
      Stream(const Tiktoken& tokenizer, Specials specials)
          : tokenizer_(tokenizer), specials_(specials) {}
      std::string feed(std::int32_t id) override {
        return text_.feed(tokenizer_.bytes_of(id, specials_));
      }
      std::string finish() override { return text_.finish(); }

     private:
      const Tiktoken& tokenizer_;
      Specials specials_;
      tok::Utf8Stream text_;
    };
    return std::make_unique<Stream>(*this, specials);
  }
  index_t vocab() const override { return specials_begin_ + std::ssize(ranks_.known->specials); }
  std::string kind() const override { return "tiktoken"; }
  bool uses_unicode() const override { return true; }
  std::string model() const override { return model_; }
  SpecialIds special_ids() const override {
    return {named(kBosNames), named(kEosNames), named(kPadNames), -1};
  }
  std::int32_t token_id(std::string_view text) const override {
    const auto& have = ranks_.known->specials;
    if (const auto found = std::find(have.begin(), have.end(), text); found != have.end())
      return static_cast<std::int32_t>(specials_begin_ + (found - have.begin()));
    return ranks_.vocabulary.id(text);
  }
  std::vector<TokenizerFile> files(const SpecialIds&) const override {
    return {{"tiktoken.model", model_}};
  }

 private:
  void add_word(std::string_view word, tok::WordCache& cache, Ids& ids) const {
    const std::uint64_t hash = tok::WordCache::hash_of(word);
    const bool short_enough = word.size() <= tok::WordCache::kLongest;
    if (short_enough && cache.find(word, hash, ids)) return;
    const std::size_t before = ids.size();
    if (const std::int32_t id = ranks_.vocabulary.id(word); id >= 0) {
      ids.push_back(id);
    } else {
      Ids symbols(word.size());
      for (std::size_t n = 0; n < word.size(); ++n)
        symbols[n] = ranks_.vocabulary.id(word.substr(n, 1));
      merges_.apply(symbols);
      ids.insert(ids.end(), symbols.begin(), symbols.end());
    }
    if (short_enough) cache.add(word, hash, std::span(ids).subspan(before));
  }
  [[nodiscard]] std::string bytes_of(std::int32_t id, Specials specials) const {
    if (id < 0 || id >= vocab())
      throw_error(ExitCode::config, "token {} is outside the vocabulary of {}", id, vocab());
    if (const std::string* token = ranks_.vocabulary.token(id)) return *token;
    if (id < specials_begin_ || specials == Specials::skip) return {};
    return ranks_.known->specials[static_cast<std::size_t>(id - specials_begin_)];
  }
  template <std::size_t n>
  [[nodiscard]] std::int32_t named(const std::array<std::string_view, n>& names) const {
    for (const std::string_view name : names)
      if (const std::int32_t id = token_id(name); id >= specials_begin_) return id;
    return -1;
  }

  std::string model_;
  Ranks ranks_;
  tok::Merges merges_;
  tok::WordScanner scanner_;
  index_t specials_begin_;
  mutable tok::CachePool caches_;
};

}  // namespace

bool is_tiktoken(std::string_view model) {
  index_t lines = 0;
  bool all = true;
  each_line(model, [&](std::string_view line, index_t number) {
    if (number == 1 && line.starts_with(kPatternLine)) return true;
    all = rank_of(line).has_value();
    return all && ++lines < 4;
  });
  return all && lines > 0;
}

std::unique_ptr<Tokenizer> make_tiktoken_tokenizer(const std::string& model) {
  return std::make_unique<Tiktoken>(model);
}

}  // namespace t3d
