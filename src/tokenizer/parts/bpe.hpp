// Byte-pair encoding: a word begins as characters (or bytes), and pairs of neighbours become one
// token, in the order in which training found them (Sennrich et al. 2016).
#pragma once
#include <array>
#include <optional>

#include "tokenizer/parts/merges.hpp"
#include "tokenizer/parts/model.hpp"

namespace t3d::tok {

struct BpeOptions {
  std::optional<std::string> unknown_token;
  std::string prefix, suffix;      // of what does not begin a word; of what ends one
  bool fuse_unknown = false;       // several in a row are one
  bool byte_fallback = false;      // <0x0A> for what is not in the vocabulary
  bool mark_begins = false;        // no merge joins a U+2581 to another character before it
  bool whole_words_first = false;  // a word that is a token is not merged ("ignore_merges")
};

class Bpe final : public Model {
 public:
  Bpe(Vocabulary vocabulary, Merges merges, BpeOptions options);
  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override;
  void encode_bytes(std::string_view word, std::vector<std::int32_t>& ids) const override;
  [[nodiscard]] std::size_t part_end(std::string_view word, std::size_t at) const override;
  [[nodiscard]] const Vocabulary& vocabulary() const override { return vocabulary_; }
  [[nodiscard]] std::int32_t unknown() const override;

 private:
  [[nodiscard]] std::vector<std::int32_t> symbols_of(std::string_view word) const;
  bool add_bytes(std::string_view symbol, std::vector<std::int32_t>& symbols) const;

  Vocabulary vocabulary_;
  Merges merges_;
  BpeOptions options_;
  std::array<std::int32_t, 256> fallback_{};  // <0x00> ... <0xFF>, -1 = not there
  std::array<std::int32_t, 256> letters_{};   // of the bytes' letters
  bool has_letters_ = false;                  // all of them, and bytes are nothing but letters
};

}  // namespace t3d::tok
