#include <sentencepiece_processor.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "core/error.hpp"
#include "tokenizer/hf_files.hpp"
#include "tokenizer/sentencepiece_json.hpp"
#include "tokenizer/tokenizer.hpp"

namespace t3d {
namespace {

using sentencepiece::SentencePieceProcessor;

std::string text_of(const SentencePieceProcessor& processor, const std::vector<int>& ids) {
  std::string text;
  const auto status = processor.Decode(ids, &text);
  if (!status.ok()) throw_error(ExitCode::internal, "cannot decode: {}", status.ToString());
  return text;
}

// What a piece reads as depends on whether there is text before it, and on the bytes before it. So
// runs of bytes are held back, and whatever comes behind a text is decoded behind one: that of the
// unknown piece, which every model has, and which is taken off again.
class SentencePieceStream final : public TextStream {
 public:
  SentencePieceStream(const SentencePieceProcessor& processor, Specials specials)
      : processor_(processor),
        specials_(specials),
        before_(text_of(processor, {processor.unk_id()})) {}

  std::string feed(std::int32_t id) override {
    if (id < 0 || id >= processor_.GetPieceSize())
      throw_error(ExitCode::config, "token {} is outside the vocabulary of {}", id,
                  processor_.GetPieceSize());
    if (specials_ == Specials::show && processor_.IsControl(id))
      return finish() + processor_.IdToPiece(id);
    run_.push_back(id);
    return processor_.IsByte(id) ? std::string() : finish();
  }
  std::string finish() override {
    std::vector<int> ids = run_;
    if (begun_) ids.insert(ids.begin(), processor_.unk_id());
    std::string text = text_of(processor_, ids).substr(begun_ ? before_.size() : 0);
    // As long as there is no text, the next piece is still the first one.
    begun_ = begun_ || !text.empty();
    if (begun_) run_.clear();
    return text;
  }

 private:
  const SentencePieceProcessor& processor_;
  Specials specials_;
  std::string before_;
  std::vector<int> run_;
  bool begun_ = false;
};

/// SentencePiece writes a space as U+2581 and reads U+2581 back as a space. Where a text has that
/// character itself, a model that was trained here has its three bytes, which come back as they
/// are; other models take it for a space, as their own programs do.
class SentencePieceTokenizer final : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(const std::string& model) : model_(model) {
    load(model, processor_);
    spaces_ = spaces_of_sentencepiece(model);
  }
  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    std::size_t at = 0;
    while (spaces_.trained_here) {
      const std::size_t mark = text.find(kMark, at);
      if (mark == std::string_view::npos) break;
      encode_plain(text.substr(at, mark - at), ids);
      for (const char* byte : bytes_) ids.push_back(processor_.PieceToId(byte));
      at = mark + kMark.size();
    }
    encode_plain(text.substr(at), ids);
    return ids;
  }
  /// Where a model strips its texts, a space at the border comes back as the one before a text.
  std::vector<std::int32_t> encode_rest(std::string_view text, char before) const override {
    if (text.empty() || spaces_.keeps_text || spaces_.behind) return encode(text);
    std::call_once(rest_loaded_, [&] {
      load(model_ + std::string(kPrefix), with_prefix_);
      load(model_ + std::string(kNoPrefix), without_prefix_);
    });
    const bool space = spaces_.strips && (is_space(before) || is_space(text.front()));
    std::vector<std::int32_t> ids;
    encode_by(space ? with_prefix_ : without_prefix_, text, ids);
    return ids;
  }
  /// A model with a begin of a text has it before every text, as its own programs do it.
  std::vector<std::int32_t> encode_document(std::string_view text) const override {
    std::vector<std::int32_t> ids = encode(text);
    if (processor_.bos_id() >= 0) ids.insert(ids.begin(), processor_.bos_id());
    return ids;
  }
  std::unique_ptr<TextStream> stream(Specials specials) const override {
    return std::make_unique<SentencePieceStream>(processor_, specials);
  }
  index_t vocab() const override { return processor_.GetPieceSize(); }
  std::string kind() const override { return "sentencepiece"; }
  std::string model() const override { return model_; }
  SpecialIds special_ids() const override {
    return {processor_.bos_id(), processor_.eos_id(), processor_.pad_id(), processor_.unk_id()};
  }
  std::int32_t token_id(std::string_view text) const override {
    const int id = processor_.PieceToId(text);
    return processor_.IdToPiece(id) == text ? id : -1;
  }
  std::vector<TokenizerFile> files(const SpecialIds& ids) const override {
    std::vector<TokenizerFile> files{{"tokenizer.model", model_}};
    std::string json = json_of_sentencepiece(model_);
    auto config = tokenizer_config(ids, [&](std::int32_t id) {
      return id < processor_.GetPieceSize() ? processor_.IdToPiece(id) : std::string();
    });
    // No text becomes a special token, as here.
    config["split_special_tokens"] = true;
    if (!json.empty()) {
      files.push_back({"tokenizer.json", std::move(json)});
    } else if (processor_.bos_id() >= 0 && is_like_llamas(model_)) {
      config["tokenizer_class"] = "LlamaTokenizer";
      config["add_bos_token"] = ids.adds_bos.value_or(true);
    } else {
      // The one class that leaves texts to SentencePiece in transformers 4 and 5. It adds nothing
      // to a text; version 4 looks for this name of the file.
      config["tokenizer_class"] = "BertGenerationTokenizer";
      config.erase("add_bos_token");
      for (const char* own : {"bos_token", "pad_token", "sep_token"})
        if (!config.contains(own)) config[own] = nullptr;
      files.push_back({"spiece.model", model_});
    }
    files.push_back({"tokenizer_config.json", config.dump(2) + "\n"});
    return files;
  }

 private:
  static constexpr std::string_view kMark = "\xe2\x96\x81";
  // normalizer_spec { add_dummy_prefix: ... } behind a model: of a message that comes twice, the
  // fields that come last count.
  static constexpr std::string_view kPrefix{"\x1a\x02\x18\x01", 4},
      kNoPrefix{"\x1a\x02\x18\x00", 4};

  static void load(const std::string& model, SentencePieceProcessor& processor) {
    if (const auto status = processor.LoadFromSerializedProto(model); !status.ok())
      throw_error(ExitCode::io, "not a SentencePiece model: {}", status.ToString());
  }
  /// As the model reads it: some make spaces of line ends.
  [[nodiscard]] bool is_space(char letter) const {
    if (letter == ' ') return true;
    std::vector<std::int32_t> ids, with_space;
    if ((static_cast<unsigned char>(letter) & 0x80U) == 0) {
      encode_by(processor_, std::string{'a', letter, 'a'}, ids);
      encode_by(processor_, "a a", with_space);
    }
    return !ids.empty() && ids == with_space;
  }
  void encode_plain(std::string_view text, std::vector<std::int32_t>& ids) const {
    if (!text.empty()) encode_by(processor_, text, ids);
  }
  static void encode_by(const SentencePieceProcessor& processor, std::string_view text,
                        std::vector<std::int32_t>& ids) {
    std::vector<int> more;
    const auto status = processor.Encode(text, &more);
    if (!status.ok()) throw_error(ExitCode::internal, "cannot encode: {}", status.ToString());
    ids.insert(ids.end(), more.begin(), more.end());
  }

  std::string model_;
  SentencePieceProcessor processor_;
  mutable SentencePieceProcessor with_prefix_, without_prefix_;  // for texts that go on
  mutable std::once_flag rest_loaded_;
  std::array<const char*, 3> bytes_{"<0xE2>", "<0x96>", "<0x81>"};
  SentencePieceSpaces spaces_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(const std::string& model) {
  return std::make_unique<SentencePieceTokenizer>(model);
}

}  // namespace t3d
