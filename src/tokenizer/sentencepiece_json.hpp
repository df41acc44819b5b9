// A SentencePiece model of the kind that is trained here, as tokenizer.json.
#pragma once
#include <string>
#include <string_view>

namespace t3d {

/// The same ids of every text that is UTF-8 and has no special token's name in it. Empty when the
/// model is not of this kind: BPE with bytes for what is unknown, and texts that stay as they are.
/// `model` is one that the SentencePiece library reads.
[[nodiscard]] std::string json_of_sentencepiece(std::string_view model);

/// Its algorithm: "unigram", "bpe", "word" or "char".
[[nodiscard]] std::string_view algorithm_of_sentencepiece(std::string_view model);

/// Made as Llama's: transformers has a class of its own for such a model.
[[nodiscard]] bool is_like_llamas(std::string_view model);

/// What a model does with the spaces of a text.
struct SentencePieceSpaces {
  bool strips = true;         // those around a text go, and of several between words all but one
  bool behind = false;        // they belong to the word before
  bool keeps_text = false;    // nothing at all happens to a text
  bool trained_here = false;  // by train_sentencepiece()
};
[[nodiscard]] SentencePieceSpaces spaces_of_sentencepiece(std::string_view model);

}  // namespace t3d
