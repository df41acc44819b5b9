// Tokens found in a text before anything else is done with it: special ones, and those that a user
// has added to the model's vocabulary.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "tokenizer/parts/json_part.hpp"
#include "tokenizer/parts/normalizer.hpp"
#include "tokenizer/parts/trie.hpp"
#include "tokenizer/parts/vocabulary.hpp"

namespace t3d::tok {

struct AddedToken {
  std::string content;
  std::int32_t id = -1;
  bool single_word = false;             // not inside a word
  bool lstrip = false, rstrip = false;  // with the white space before, behind
  bool normalized = false;              // looked for in the normalized text
  bool special = false;
};

/// Part of a text: an added token (id >= 0), or what the rest of the tokenizer works on.
struct AddedSpan {
  std::size_t begin, end;
  std::int32_t id;
};

class AddedTokens {
 public:
  AddedTokens() = default;
  /// The list "added_tokens". Error(io) where ids contradict the vocabulary or each other.
  AddedTokens(const JsonPart& list, const Vocabulary& vocabulary, const Normalizer* normalizer);

  [[nodiscard]] std::vector<AddedSpan> spans_of_text(std::string_view text) const {
    return spans(text, plain_);
  }
  [[nodiscard]] std::vector<AddedSpan> spans_of_normalized(std::string_view text) const {
    return spans(text, normalized_);
  }
  [[nodiscard]] const std::vector<AddedToken>& tokens() const { return tokens_; }
  [[nodiscard]] const AddedToken* by_id(std::int32_t id) const;

 private:
  struct Finder {
    Trie trie;  // values are places in tokens_
    bool empty = true;
  };
  [[nodiscard]] std::vector<AddedSpan> spans(std::string_view text, const Finder& finder) const;
  [[nodiscard]] static bool stands_alone(std::string_view text, std::size_t begin, std::size_t end);

  std::vector<AddedToken> tokens_;
  std::unordered_map<std::int32_t, std::size_t> by_id_;
  Finder plain_, normalized_;
};

}  // namespace t3d::tok
