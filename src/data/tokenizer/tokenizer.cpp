#include "data/tokenizer/tokenizer.hpp"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/random.hpp"
#include "io/hdf5/token_file.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

constexpr std::string_view kBytes = "bytes";
constexpr std::string_view kSentencePiece = "sentencepiece";

class ByteTokenizer final : public Tokenizer {
 public:
  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    ids.reserve(text.size());
    for (const char letter : text) ids.push_back(static_cast<std::uint8_t>(letter));
    return ids;
  }
  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    for (const std::int32_t id : ids) {
      if (id < 0 || id > 255)
        throw_error(ExitCode::config, "token {} is outside the vocabulary of 256", id);
      text.push_back(static_cast<char>(id));
    }
    return text;
  }
  index_t vocab() const override { return 256; }
  std::string kind() const override { return std::string(kBytes); }
  std::string model() const override { return {}; }
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
  std::string decode(std::span<const std::int32_t> ids) const override {
    for (const std::int32_t id : ids)
      if (id < 0 || id >= processor_.GetPieceSize())
        throw_error(ExitCode::config, "token {} is outside the vocabulary of {}", id,
                    processor_.GetPieceSize());
    std::string text;
    const auto status = processor_.Decode(std::vector<int>(ids.begin(), ids.end()), &text);
    if (!status.ok()) throw_error(ExitCode::internal, "cannot decode: {}", status.ToString());
    return text;
  }
  index_t vocab() const override { return processor_.GetPieceSize(); }
  std::string kind() const override { return std::string(kSentencePiece); }
  std::string model() const override { return model_; }
  SpecialIds special_ids() const override {
    return {processor_.bos_id(), processor_.eos_id(), processor_.pad_id(), processor_.unk_id()};
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
  sentencepiece::SentencePieceProcessor processor_;
  std::array<const char*, 3> bytes_{};
  bool has_bytes_ = false;
};

}  // namespace

std::unique_ptr<Tokenizer> make_byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

std::unique_ptr<Tokenizer> make_tokenizer(const std::string& kind, const std::string& model) {
  if (kind == kBytes) return make_byte_tokenizer();
  if (kind == kSentencePiece) return make_sentencepiece_tokenizer(model);
  throw_error(ExitCode::io, "tokenizers of kind \"{}\" are not known here", kind);
}

std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(const std::string& model) {
  return std::make_unique<SentencePieceTokenizer>(model);
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) {
  try {
    if (!is_hdf5_file(path)) return make_sentencepiece_tokenizer(read_text_file(path));
    const TokenFileReader reader(path);
    const TokenFileInfo& info = reader.info();
    if (info.tokenizer != kBytes && info.model.empty())
      throw_error(ExitCode::io, "it carries no tokenizer");
    return make_tokenizer(info.tokenizer, info.model);
  } catch (const Error& error) {
    throw_error(error.code(), "{}: {}", path, error.what());
  }
}

std::uint64_t tokenizer_hash(std::string_view kind, std::string_view model) {
  if (kind == kBytes) return stream_of(kBytes);
  return model.empty() ? 0 : std::max<std::uint64_t>(stream_of(model), 1);
}

}  // namespace t3d
