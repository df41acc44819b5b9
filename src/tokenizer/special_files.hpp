// What the files of a model say of its special tokens, in the order in which transformers asks
// them:
//
//   generation_config.json, then config.json   eos_token_id (a number or a list), bos_token_id,
//                                              pad_token_id: of texts that the model writes
//   tokenizer_config.json                      eos_token, bos_token, pad_token: of texts that it
//                                              reads; add_bos_token
//
// A tokenizer alone can only guess (special_names.hpp).
#pragma once
#include <string>
#include <vector>

#include "tokenizer/tokenizer.hpp"

namespace t3d {

/// Of the files in `folder`. What they do not say is the tokenizer's guess, if there is one
/// (`tokenizer` may be null). Ids outside [0, vocab) count as not there. A note where files and
/// guess differ. Error(io) when a file is no JSON object.
[[nodiscard]] SpecialIds special_ids_of_folder(const std::string& folder,
                                               const Tokenizer* tokenizer, index_t vocab,
                                               std::vector<std::string>& notes);

/// Of what load_tokenizer(path) gave: the same for a folder and a tokenizer's file in one; a token
/// file has its own, or, where it says nothing (version 1), the tokenizer's guess.
[[nodiscard]] SpecialIds load_special_ids(const std::string& path, const Tokenizer& tokenizer,
                                          std::vector<std::string>& notes);

/// The id that a user means: a number, or a token's text. Error(config) when it is neither.
[[nodiscard]] std::int32_t named_id(const std::string& word, const Tokenizer* tokenizer,
                                    index_t vocab);

/// As JSON, and back. Error(io) where one is no id, of whatever vocabulary.
[[nodiscard]] std::string special_text(const SpecialIds& ids);
[[nodiscard]] SpecialIds special_ids_of_text(const std::string& text);

}  // namespace t3d
