#include <sentencepiece_processor.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "data/tokenizer/hf_files.hpp"
#include "data/tokenizer/sentencepiece_json.hpp"
#include "data/tokenizer/tokenizer.hpp"

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
/// character itself, it goes as its three bytes, which come back as they are.
class SentencePieceTokenizer final : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(const std::string& model) : model_(model) {
    if (const auto status = processor_.LoadFromSerializedProto(model); !status.ok())
      throw_error(ExitCode::io, "not a SentencePiece model: {}", status.ToString());
    bytes_ = {"<0xE2>", "<0x96>", "<0x81>"};
    has_bytes_ = !processor_.IsUnknown(processor_.PieceToId(bytes_[0]));
  }
  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    std::size_t at = 0;
    while (has_bytes_) {
      const std::size_t mark = text.find(kMark, at);
      if (mark == std::string_view::npos) break;
      encode_plain(text.substr(at, mark - at), ids);
      for (const char* byte : bytes_) ids.push_back(processor_.PieceToId(byte));
      at = mark + kMark.size();
    }
    encode_plain(text.substr(at), ids);
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
    auto config = tokenizer_config(ids, [&](std::int32_t id) { return processor_.IdToPiece(id); });
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
  void encode_plain(std::string_view text, std::vector<std::int32_t>& ids) const {
    if (text.empty()) return;
    std::vector<int> more;
    const auto status = processor_.Encode(text, &more);
    if (!status.ok()) throw_error(ExitCode::internal, "cannot encode: {}", status.ToString());
    ids.insert(ids.end(), more.begin(), more.end());
  }

  std::string model_;
  SentencePieceProcessor processor_;
  std::array<const char*, 3> bytes_{};
  bool has_bytes_ = false;
};

}  // namespace

std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(const std::string& model) {
  return std::make_unique<SentencePieceTokenizer>(model);
}

}  // namespace t3d
