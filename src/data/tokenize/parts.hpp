// The work of `tokenize`, cut into parts that do not depend on who does them.
#pragma once
#include <string>
#include <vector>

#include "data/text/text_input.hpp"
#include "data/tokenize.hpp"
#include "tokenizer/tokenizer.hpp"

namespace t3d {

/// A range of a file: of a text, these bytes; of lines, those whose first byte is in it.
struct TextSegment {
  std::size_t input = 0;
  index_t begin = 0, end = 0;
  bool ends_document = true;  // of texts: it reaches the end of the file, or of its training part
};

struct TokenizePart {
  std::vector<TextSegment> segments;
  index_t bytes = 0;
  bool valid = false;  // texts for validation; lines are chosen one by one
  std::string name;    // says inputs and settings: a file of this name is this part's result
};

struct TokenizePlan {
  std::vector<TextInput> inputs;
  std::vector<TokenizePart> parts;
  SpecialIds special = {};  // begin and end of a document
};

/// A document is a line of this input.
[[nodiscard]] bool has_lines(const TextInput& input, const TokenizeOptions& options);

/// Error(config) when a share of compressed text is asked for that cannot be cut off.
[[nodiscard]] TokenizePlan plan_parts(std::vector<TextInput> inputs, const TokenizeOptions& options,
                                      const Tokenizer& tokenizer, const SpecialIds& special);

/// The parts of each of `workers`, the largest ones first.
[[nodiscard]] std::vector<std::vector<std::size_t>> share_parts(const TokenizePlan& plan,
                                                                std::size_t workers);

}  // namespace t3d
