// Models: one word, as the pre-tokenizer left it, to ids.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/parts/json_part.hpp"
#include "tokenizer/parts/vocabulary.hpp"

namespace t3d::tok {

class Model {
 public:
  virtual ~Model() = default;
  /// Appends the ids of a word. Error(config) when a character is not in the vocabulary and nothing
  /// stands in for it.
  virtual void encode(std::string_view word, std::vector<std::int32_t>& ids) const = 0;
  /// The same of a word whose bytes are still bytes: encode() of its letters (byte_level.hpp).
  virtual void encode_bytes(std::string_view word, std::vector<std::int32_t>& ids) const;
  /// The end of the part of a word that begins at `at`: what encode() makes of a word is what it
  /// makes of its parts. Whole texts that are one word are cheaper so.
  [[nodiscard]] virtual std::size_t part_end(std::string_view word, std::size_t) const {
    return word.size();
  }
  [[nodiscard]] virtual const Vocabulary& vocabulary() const = 0;
  [[nodiscard]] virtual std::int32_t unknown() const = 0;  // -1 = none
};

/// By "type": BPE, Unigram, WordPiece, WordLevel. Error(io) naming the part.
[[nodiscard]] std::unique_ptr<Model> make_model(const JsonPart& part);
[[nodiscard]] std::unique_ptr<Model> make_bpe(const JsonPart& part);
[[nodiscard]] std::unique_ptr<Model> make_unigram(const JsonPart& part);
[[nodiscard]] std::unique_ptr<Model> make_wordpiece(const JsonPart& part);
[[nodiscard]] std::unique_ptr<Model> make_wordlevel(const JsonPart& part);

/// The token that stands for a byte where a character is not in the vocabulary: <0x0A>.
[[nodiscard]] std::string byte_token(std::uint8_t byte);

}  // namespace t3d::tok
