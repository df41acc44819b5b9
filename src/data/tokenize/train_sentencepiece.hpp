// Trains a tokenizer on texts.
#pragma once
#include <string>
#include <vector>

#include "core/types.hpp"

namespace t3d {

/// Trains on the texts of `files`; returns the serialized model. kind "bpe" or "unigram". Smaller
/// corpora may give fewer ids than `vocab`. Id 1 is the end of a document. Error(config) when
/// `vocab` is too small.
[[nodiscard]] std::string train_sentencepiece(const std::vector<std::string>& files,
                                              const std::string& kind, index_t vocab);

}  // namespace t3d
