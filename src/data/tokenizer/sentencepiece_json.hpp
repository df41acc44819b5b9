// A SentencePiece model of the kind that is trained here, as tokenizer.json.
#pragma once
#include <string>
#include <string_view>

namespace t3d {

/// The same ids of every text that is UTF-8 and has no special token's name in it. Empty when the
/// model is not of this kind: BPE with bytes for what is unknown, and texts that stay as they are.
/// `model` is one that the SentencePiece library reads.
[[nodiscard]] std::string json_of_sentencepiece(std::string_view model);

/// Made as Llama's: transformers has a class of its own for such a model.
[[nodiscard]] bool is_like_llamas(std::string_view model);

}  // namespace t3d
