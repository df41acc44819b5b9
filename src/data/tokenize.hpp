// Corpus of texts -> token files: `transformer3d tokenize`.
#pragma once
#include <string>
#include <vector>

#include "core/types.hpp"

namespace t3d {

struct TokenizeOptions {
  std::string kind = "bytes";   // "bytes" | "bpe" | "unigram"
  index_t vocab = 8192;         // of a tokenizer trained here
  std::string model_file;       // use this SentencePiece model instead of training one
  double valid_fraction = 0.0;  // the last part of the text goes to the valid file
};

struct TokenizeResult {
  std::string train_path, valid_path;  // valid_path empty without a valid part
  index_t train_tokens = 0, valid_tokens = 0;
  index_t vocab = 0, text_bytes = 0;
};

/// Reads `inputs` (globs) one after another, writes `prefix`-train.h5 and `prefix`-valid.h5.
TokenizeResult tokenize_corpus(const std::vector<std::string>& inputs, const std::string& prefix,
                               const TokenizeOptions& options);

}  // namespace t3d
