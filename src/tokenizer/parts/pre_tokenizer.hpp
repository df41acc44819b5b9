// Pre-tokenizers: a text cut into words, none of which the model joins again.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/parts/json_part.hpp"
#include "tokenizer/parts/word_pattern.hpp"

namespace t3d::tok {

struct Piece {
  std::string text;
  bool first;  // begins where the user's text begins
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  /// Replaces each piece by its parts; empty ones go.
  virtual void split(std::vector<Piece>& pieces) const = 0;
};

/// By "type". Error(io) naming the part.
[[nodiscard]] std::unique_ptr<PreTokenizer> make_pre_tokenizer(const JsonPart& part);

/// What byte-level BPE usually has: one of the three patterns, then bytes as letters.
struct ByteWords {
  WordPattern pattern;
  bool add_space;  // in front of a text that has none there
};
/// Nothing when the part is anything else.
[[nodiscard]] std::optional<ByteWords> byte_words_of(const JsonPart& part);

}  // namespace t3d::tok
