// Which tensors of a Hugging Face model are which of ours. Families by the keys of [model]:
//
//   GPT2LMHeadModel      layernorm, gelu, learned positions, biases; matrices [in, out]
//   LlamaForCausalLM     rmsnorm, swiglu, rope; biases nowhere, or in attention, or everywhere
//   Qwen2ForCausalLM     as Llama with biases of queries, keys and values alone
//   Qwen3ForCausalLM     as Llama with normed heads
//
// MistralForCausalLM up to its window is LlamaForCausalLM without biases under another name; and
// the one of the two whose hidden size need not be a multiple of the heads. Names and layouts:
// the models' modules in huggingface/transformers. Pure arithmetic.
#pragma once
#include <string>
#include <vector>

#include "core/box.hpp"
#include "core/options.hpp"

namespace t3d {

enum class HfFamily { gpt2, llama, mistral, qwen2, qwen3 };

/// A foreign tensor and the box of one of ours that it is. Vectors are rows [1, n] here, as in
/// checkpoints.
struct HfTensor {
  std::string name;
  bool vector = false;
  bool transposed = false;  // foreign [columns, rows] of the box
  std::string ours;
  Box box;
  bool positions = false;   // a table of positions: the foreign one may be longer
  bool vocabulary = false;  // a row for each token
  [[nodiscard]] index_t rows() const { return transposed ? box.cols : box.rows; }
  [[nodiscard]] index_t cols() const { return transposed ? box.rows : box.cols; }
};

/// The keys of [model] that no family has together; empty where there is a family. A line each.
[[nodiscard]] std::vector<std::string> hf_obstacles(const ModelConfig& model);
/// Error(config), listing the obstacles, where there is none.
[[nodiscard]] HfFamily hf_family(const ModelConfig& model);
/// In the order of the layers. Every element of every own tensor is in one box.
[[nodiscard]] std::vector<HfTensor> hf_tensors(const ModelConfig& model);
/// Tensors that files of published models carry and no computation reads: masks, frequencies.
[[nodiscard]] bool is_no_weight(const std::string& name);

}  // namespace t3d
