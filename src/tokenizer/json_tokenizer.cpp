// tokenizer.json: added tokens, then normalizer, pre-tokenizer, model; and back through the
// decoder.
#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "tokenizer/hf_files.hpp"
#include "tokenizer/parts/added_tokens.hpp"
#include "tokenizer/parts/decoder.hpp"
#include "tokenizer/parts/json_text.hpp"
#include "tokenizer/parts/model.hpp"
#include "tokenizer/parts/post_processor.hpp"
#include "tokenizer/parts/pre_tokenizer.hpp"
#include "tokenizer/parts/utf8.hpp"
#include "tokenizer/parts/word_cache.hpp"
#include "tokenizer/special_names.hpp"
#include "tokenizer/tokenizer.hpp"

namespace t3d {
namespace {

using Ids = std::vector<std::int32_t>;

/// The parts of a file.
struct Parts {
  explicit Parts(const nlohmann::json& file) {
    const tok::JsonPart all(file, "");
    all.only({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
              "post_processor", "decoder", "model"});
    model = tok::make_model(all.at("model"));
    if (all.has("normalizer")) normalizer = tok::make_normalizer(all.at("normalizer"));
    if (all.has("pre_tokenizer")) {
      const tok::JsonPart part = all.at("pre_tokenizer");
      pre_tokenizer = tok::make_pre_tokenizer(part);
      byte_words = tok::byte_words_of(part);
    }
    read_rest(file);
    if (all.has("added_tokens"))
      added = {all.at("added_tokens"), model->vocabulary(), normalizer.get()};
    vocab = model->vocabulary().end();
    for (const tok::AddedToken& token : added.tokens())
      vocab = std::max<index_t>(vocab, token.id + 1);
    if (all.has("decoder")) decoder = tok::Decoder(all.at("decoder"));
    if (!all.has("post_processor")) return;
    const tok::JsonPart part = all.at("post_processor");
    post_processor = tok::PostProcessor(part);
    for (const std::int32_t id : post_processor.added())
      if (id >= vocab) part.fail("id {} is outside the vocabulary of {}", id, vocab);
  }

  /// The parts without what they put before a text, or take away there.
  void read_rest(nlohmann::json file) {
    for (const char* name : {"normalizer", "pre_tokenizer"})
      if (file.contains(name)) remove_begin(file[name]);
    const tok::JsonPart all(file, "");
    if (all.has("normalizer")) normalizer_of_rest = tok::make_normalizer(all.at("normalizer"));
    if (all.has("pre_tokenizer"))
      pre_tokenizer_of_rest = tok::make_pre_tokenizer(all.at("pre_tokenizer"));
  }
  static void remove_begin(nlohmann::json& part) {
    const std::string type = part.is_object() ? part.value("type", "") : "";
    if (type == "Prepend") part = {{"type", "Sequence"}, {"normalizers", nlohmann::json::array()}};
    if (type == "Strip") part["strip_left"] = false;
    if (type == "ByteLevel" && part.contains("add_prefix_space")) part["add_prefix_space"] = false;
    if (type == "Metaspace") {
      part.erase("add_prefix_space");
      part["prepend_scheme"] = "never";
    }
    for (const char* list : {"normalizers", "pretokenizers"})
      if (type == "Sequence" && part.contains(list))
        for (nlohmann::json& step : part[list]) remove_begin(step);
  }

  std::unique_ptr<tok::Model> model;
  std::unique_ptr<tok::Normalizer> normalizer, normalizer_of_rest;          // null = none
  std::unique_ptr<tok::PreTokenizer> pre_tokenizer, pre_tokenizer_of_rest;  // null = none
  std::optional<tok::ByteWords> byte_words;  // what pre_tokenizer is, if it is this
  tok::AddedTokens added;
  tok::PostProcessor post_processor;
  tok::Decoder decoder;
  index_t vocab = 0;
};

/// One call's way through the parts.
class Encoding {
 public:
  Encoding(const Parts& parts, tok::WordCache& cache) : parts_(parts), cache_(cache) {}

  /// `goes_on`: behind another text.
  Ids text(std::string_view text, bool goes_on) {
    for (const tok::AddedSpan& span : parts_.added.spans_of_text(text)) {
      if (span.id >= 0)
        ids_.push_back(span.id);
      else
        plain(text.substr(span.begin, span.end - span.begin), span.begin == 0, goes_on);
      goes_on = false;
    }
    return std::move(ids_);
  }

 private:
  void plain(std::string_view text, bool first, bool goes_on) {
    std::string changed;
    const auto& normalizer = goes_on ? parts_.normalizer_of_rest : parts_.normalizer;
    if (normalizer) {
      changed = text;
      first &= !normalizer->apply(changed);
      text = changed;
    }
    for (const tok::AddedSpan& span : parts_.added.spans_of_normalized(text)) {
      if (span.id >= 0)
        ids_.push_back(span.id);
      else if (parts_.byte_words)
        byte_words(text.substr(span.begin, span.end - span.begin), goes_on);
      else
        words(text.substr(span.begin, span.end - span.begin), first && span.begin == 0, goes_on);
      goes_on = false;
    }
  }

  void byte_words(std::string_view text, bool goes_on) {
    const tok::WordScanner scanner(parts_.byte_words->pattern);
    std::string with_space;
    if (parts_.byte_words->add_space && !goes_on && !text.starts_with(' '))
      text = with_space.append(" ").append(text);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = scanner.word_end(text, at);
      const std::string_view word = text.substr(at, end - at);
      cached(word, [&] { parts_.model->encode_bytes(word, ids_); });
      at = end;
    }
  }

  void words(std::string_view text, bool first, bool goes_on) {
    std::vector<tok::Piece> pieces{{std::string(text), first}};
    const auto& cutter = goes_on ? parts_.pre_tokenizer_of_rest : parts_.pre_tokenizer;
    if (cutter) cutter->split(pieces);
    for (const tok::Piece& piece : pieces) word(piece.text);
  }

  void word(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = parts_.model->part_end(text, at);
      const std::string_view part = text.substr(at, end - at);
      cached(part, [&] { parts_.model->encode(part, ids_); });
      at = end;
    }
  }

  template <class Encode>
  void cached(std::string_view word, const Encode& encode) {
    if (word.size() > tok::WordCache::kLongest) return encode();
    const std::uint64_t hash = tok::WordCache::hash_of(word);
    if (cache_.find(word, hash, ids_)) return;
    const std::size_t before = ids_.size();
    encode();
    cache_.add(word, hash, std::span(ids_).subspan(before));
  }

  const Parts& parts_;
  tok::WordCache& cache_;
  Ids ids_;
};

class JsonStream final : public TextStream {
 public:
  JsonStream(const Parts& parts, Specials specials)
      : parts_(parts), run_(parts.decoder), specials_(specials) {}
  std::string feed(std::int32_t id) override {
    if (id < 0 || id >= parts_.vocab)
      throw_error(ExitCode::config, "token {} is outside the vocabulary of {}", id, parts_.vocab);
    if (const tok::AddedToken* added = parts_.added.by_id(id)) {
      if (added->special && specials_ == Specials::skip) return {};
      return run_.feed(added->content);
    }
    const std::string* token = parts_.model->vocabulary().token(id);
    return token == nullptr ? std::string() : run_.feed(*token);  // ids without a token: nothing
  }
  std::string finish() override { return run_.finish(); }

 private:
  const Parts& parts_;
  tok::Decoder::Run run_;
  Specials specials_;
};

class JsonTokenizer final : public Tokenizer {
 public:
  explicit JsonTokenizer(const std::string& model)
      : model_(model), parts_(tok::parse_json(model)) {}

  Ids encode(std::string_view text) const override { return encode_text(text, false); }
  Ids encode_rest(std::string_view text, char /*before*/) const override {
    return encode_text(text, true);
  }
  Ids encode_document(std::string_view text) const override {
    return parts_.post_processor.apply(encode(text));
  }
  std::unique_ptr<TextStream> stream(Specials specials) const override {
    return std::make_unique<JsonStream>(parts_, specials);
  }
  index_t vocab() const override { return parts_.vocab; }
  std::string kind() const override { return "tokenizer.json"; }
  bool uses_unicode() const override { return true; }
  std::string model() const override { return model_; }

  SpecialIds special_ids() const override {
    SpecialIds ids;
    ids.bos = parts_.post_processor.front();
    ids.eos = parts_.post_processor.back();
    if (ids.bos < 0) ids.bos = named(kBosNames);
    if (ids.eos < 0) ids.eos = named(kEosNames);
    ids.pad = named(kPadNames);
    ids.unknown = parts_.model->unknown();
    return ids;
  }
  std::int32_t token_id(std::string_view text) const override {
    for (const tok::AddedToken& token : parts_.added.tokens())
      if (token.content == text) return token.id;
    return parts_.model->vocabulary().id(text);
  }
  std::vector<TokenizerFile> files(const SpecialIds& ids) const override {
    const auto config = tokenizer_config(ids, [&](std::int32_t id) { return token_of(id); });
    return {{"tokenizer.json", model_}, {"tokenizer_config.json", config.dump(2) + "\n"}};
  }

 private:
  [[nodiscard]] Ids encode_text(std::string_view text, bool goes_on) const {
    // Bytes that are no text have letters, too, where nothing else is done with the text.
    std::string valid;
    const bool takes_bytes = parts_.byte_words && !parts_.normalizer;
    if (!takes_bytes && !tok::is_utf8(text)) text = valid = tok::repaired(text);
    const auto cache = caches_.borrow();
    return Encoding(parts_, *cache).text(text, goes_on);
  }
  template <std::size_t n>
  [[nodiscard]] std::int32_t named(const std::array<std::string_view, n>& names) const {
    for (const std::string_view name : names)
      for (const tok::AddedToken& token : parts_.added.tokens())
        if (token.special && token.content == name) return token.id;
    return -1;
  }
  [[nodiscard]] std::string token_of(std::int32_t id) const {
    const tok::AddedToken* added = parts_.added.by_id(id);
    const std::string* token = parts_.model->vocabulary().token(id);
    return added != nullptr ? added->content : token != nullptr ? *token : std::string();
  }

  std::string model_;
  Parts parts_;
  mutable tok::CachePool caches_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_json_tokenizer(const std::string& model) {
  return std::make_unique<JsonTokenizer>(model);
}

}  // namespace t3d
