// Tokenizer: text to ids and back. Byte tokenizer (256 ids) and SentencePiece, trained so that
// decode(encode(x)) == x for every valid UTF-8 text: no normalisation, spaces and newlines kept,
// unknown characters as bytes.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/special_ids.hpp"
#include "core/types.hpp"

namespace t3d {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Ids of the text alone, without begin or end of a document.
  [[nodiscard]] virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  /// Error(config) on an id outside the vocabulary.
  [[nodiscard]] virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
  [[nodiscard]] virtual index_t vocab() const = 0;
  [[nodiscard]] virtual std::string kind() const = 0;   // "bytes" | "sentencepiece"
  [[nodiscard]] virtual std::string model() const = 0;  // serialized, or empty
  [[nodiscard]] virtual SpecialIds special_ids() const { return {}; }
};

/// By kind() and model(), as token files and checkpoints keep them. Error(io) if the model is none
/// of that kind, or the kind is unknown.
[[nodiscard]] std::unique_ptr<Tokenizer> make_tokenizer(const std::string& kind,
                                                        const std::string& model);
[[nodiscard]] std::unique_ptr<Tokenizer> make_byte_tokenizer();
/// From the bytes of a SentencePiece model (as embedded in token files). Error(io) if they are not.
[[nodiscard]] std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(const std::string& model);
/// The tokenizer a token file or a *.model file carries. Error(io), naming the file, if it has
/// none.
[[nodiscard]] std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path);

/// Tells tokenizers apart, for files that were made at different times: of the serialized model,
/// one fixed number for "bytes", and 0 where neither says what the ids mean.
[[nodiscard]] std::uint64_t tokenizer_hash(std::string_view kind, std::string_view model);
[[nodiscard]] inline std::uint64_t tokenizer_hash(const Tokenizer& tokenizer) {
  return tokenizer_hash(tokenizer.kind(), tokenizer.model());
}

/// Trains on the texts of `files`; returns the serialized model. kind "bpe" or "unigram". Smaller
/// corpora may give fewer ids than `vocab`. Error(config) when `vocab` is too small.
[[nodiscard]] std::string train_sentencepiece(const std::vector<std::string>& files,
                                              const std::string& kind, index_t vocab);

}  // namespace t3d
