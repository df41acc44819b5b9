// The names that special tokens usually have, likeliest first. tokenizer.json and files of ranks do
// not say which token is which.
#pragma once
#include <array>
#include <string_view>

namespace t3d {

inline constexpr std::array<std::string_view, 8> kBosNames{
    "<|begin_of_text|>", "<s>", "<bos>", "<|startoftext|>", "<BOS>", "[BOS]", "<|bos|>", "[CLS]"};
inline constexpr std::array<std::string_view, 9> kEosNames{
    "<|end_of_text|>", "</s>",    "<eos>", "<|endoftext|>", "<EOS>",
    "[EOS]",           "<|eos|>", "[SEP]", "<|im_end|>"};
inline constexpr std::array<std::string_view, 5> kPadNames{"<pad>", "[PAD]", "<|pad|>", "<PAD>",
                                                           "<|finetune_right_pad_id|>"};

}  // namespace t3d
