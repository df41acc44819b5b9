// Tokenizer: text to ids and back. Four kinds:
//   bytes           256 ids, a text is its bytes
//   sentencepiece   a *.model of SentencePiece; of one trained here, decode(encode(x)) == x for
//                   every UTF-8 text: no normalisation, unknown characters as bytes
//   tokenizer.json  a file of Hugging Face's tokenizers: the same ids as theirs. Its truncation and
//                   padding are not used: texts here are never cut.
//   tiktoken        a file of ranks: "BASE64 RANK" per line
// Text that is not UTF-8 is read as Python's errors="replace" does, except where bytes are ids.
// Any number of threads may use one tokenizer.
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

/// What decoding does with ids that stand for no text, such as the end of a document.
enum class Specials : std::uint8_t { skip, show };

/// Text of ids that come one by one. What feed() and finish() give, one after the other, is
/// decode() of all the ids.
class TextStream {
 public:
  virtual ~TextStream() = default;
  /// The text that is complete with this id: of a character's bytes nothing until the last one.
  /// Error(config) on an id outside the vocabulary.
  [[nodiscard]] virtual std::string feed(std::int32_t id) = 0;
  /// What was held back.
  [[nodiscard]] virtual std::string finish() = 0;
};

struct TokenizerFile {
  std::string name, text;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Ids of the text alone, without begin or end of a document.
  [[nodiscard]] virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  /// With the ids that the tokenizer puts around a text, if it does (a BOS, an EOS).
  [[nodiscard]] virtual std::vector<std::int32_t> encode_document(std::string_view text) const {
    return encode(text);
  }
  /// Ids of a text that goes on behind another one, whose last byte is `before`: what some
  /// tokenizers put at the begin of a text is not put there.
  [[nodiscard]] virtual std::vector<std::int32_t> encode_rest(std::string_view text,
                                                              char before) const {
    (void)before;
    return encode(text);
  }
  [[nodiscard]] virtual std::unique_ptr<TextStream> stream(Specials specials) const = 0;
  /// Error(config) on an id outside the vocabulary.
  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids,
                                   Specials specials = Specials::skip) const;
  [[nodiscard]] virtual index_t vocab() const = 0;  // highest id + 1
  /// "bytes" | "sentencepiece" | "tokenizer.json" | "tiktoken"
  [[nodiscard]] virtual std::string kind() const = 0;
  [[nodiscard]] virtual std::string model() const = 0;  // serialized, or empty
  /// Where it cuts a text depends on what letters, marks and numbers are.
  [[nodiscard]] virtual bool uses_unicode() const { return false; }
  /// tokenizer.json does not say which ids these are: what its post-processor puts around a text,
  /// else the added token with one of the usual names (special_names.hpp). The files beside it know
  /// better (special_files.hpp).
  [[nodiscard]] virtual SpecialIds special_ids() const { return {}; }
  /// The id of a token by its text; -1 = there is none.
  [[nodiscard]] virtual std::int32_t token_id(std::string_view text) const {
    (void)text;
    return -1;
  }
  /// What a folder with a model needs so that other programs find this tokenizer, with these
  /// special tokens.
  [[nodiscard]] virtual std::vector<TokenizerFile> files(const SpecialIds& ids) const {
    (void)ids;
    return {};
  }
  [[nodiscard]] std::vector<TokenizerFile> files() const { return files(special_ids()); }
};

/// By model(), whose content says of which kind it is; "bytes" has none. Error(io).
[[nodiscard]] std::unique_ptr<Tokenizer> make_tokenizer(const std::string& model);
/// By kind() and model(), as token files and checkpoints keep them. Error(io) if the model is none
/// of that kind, or the kind is unknown.
[[nodiscard]] std::unique_ptr<Tokenizer> make_tokenizer(const std::string& kind,
                                                        const std::string& model);
[[nodiscard]] std::unique_ptr<Tokenizer> make_byte_tokenizer();
/// From the bytes of a SentencePiece model (as embedded in token files). Error(io) if they are not.
[[nodiscard]] std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(const std::string& model);
/// From the bytes of a tokenizer.json. Error(io), naming the part, when there is one that is not
/// known here: never other ids than theirs.
[[nodiscard]] std::unique_ptr<Tokenizer> make_json_tokenizer(const std::string& model);
/// From the bytes of a file of ranks. Error(io) if they are not, or their pattern is not known.
[[nodiscard]] std::unique_ptr<Tokenizer> make_tiktoken_tokenizer(const std::string& model);

/// The tokenizer of a file, by its content: a token file (HDF5) carries its own, tokenizer.json is
/// an object, a file of ranks has its first lines like that; any other is a SentencePiece model. Of
/// a folder: its tokenizer.json, else tokenizer.model, else tiktoken.model; tokenizer.model first,
/// where tokenizer.json is what its files() give. Error(io), naming the file, if it has none;
/// Error(no_input) if there is no file.
[[nodiscard]] std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path);

/// Tells tokenizers apart, for files that were made at different times: of the serialized model,
/// one fixed number for "bytes", and 0 where neither says what the ids mean.
[[nodiscard]] std::uint64_t tokenizer_hash(std::string_view kind, std::string_view model);
[[nodiscard]] inline std::uint64_t tokenizer_hash(const Tokenizer& tokenizer) {
  return tokenizer_hash(tokenizer.kind(), tokenizer.model());
}

}  // namespace t3d
