#include "config/presets.hpp"

namespace t3d {
namespace {

/// GPT-2 (Radford et al. 2019): layernorm, gelu, learned positions, biases, tied embeddings.
Preset gpt(const char* name, index_t layers, index_t hidden, index_t heads, index_t context = 1024,
           index_t vocab = 50257) {
  ModelConfig model;
  model.preset = name;
  model.layers = layers;
  model.hidden = hidden;
  model.heads = heads;
  model.context = context;
  model.vocab = vocab;
  return {name, model};
}

/// Llama (Touvron et al. 2023): rmsnorm, swiglu, rope, no biases, untied embeddings.
Preset llama(const char* name, index_t layers, index_t hidden, index_t heads, index_t ffn,
             index_t context, index_t vocab) {
  ModelConfig model = gpt(name, layers, hidden, heads, context, vocab).model;
  model.ffn = ffn;
  model.norm = NormKind::rms;
  model.activation = Activation::swiglu;
  model.position = Position::rope;
  model.bias = false;
  model.tied_embeddings = false;
  return {name, model};
}

Preset llama3_8b() {
  Preset preset = llama("llama3-8b", 32, 4096, 32, 14336, 8192, 128256);
  preset.model.kv_heads = 8;
  preset.model.rope.base = 500000;
  return preset;
}

/// Llama 3.2: its context of 131,072 tokens comes from one of 8,192.
Preset llama32_1b() {
  Preset preset = llama("llama3.2-1b", 16, 2048, 32, 8192, 8192, 128256);
  ModelConfig& model = preset.model;
  model.kv_heads = 8;
  model.tied_embeddings = true;
  model.rope = {
      .base = 500000, .scaling = RopeScaling::llama3, .factor = 32, .original_context = 8192};
  return preset;
}

/// Qwen 3: heads wider than hidden / heads, and normed.
Preset qwen3_600m() {
  Preset preset = llama("qwen3-0.6b", 28, 1024, 16, 3072, 8192, 151936);
  ModelConfig& model = preset.model;
  model.kv_heads = 8;
  model.head_columns = 128;
  model.qk_norm = true;
  model.tied_embeddings = true;
  model.rope.base = 1000000;
  model.norm_eps = 1e-6;
  return preset;
}

Preset smollm2_135m() {
  Preset preset = llama("smollm2-135m", 30, 576, 9, 1536, 2048, 49152);
  ModelConfig& model = preset.model;
  model.kv_heads = 3;
  model.tied_embeddings = true;
  model.rope.base = 100000;
  return preset;
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all{gpt("gpt-tiny", 4, 256, 4, 256, 256),
                                       gpt("gpt-30m", 6, 384, 6),
                                       gpt("gpt2-124m", 12, 768, 12),
                                       gpt("gpt2-350m", 24, 1024, 16),
                                       gpt("gpt2-774m", 36, 1280, 20),
                                       gpt("gpt2-1558m", 48, 1600, 25),
                                       llama("llama-160m", 12, 768, 12, 3072, 2048, 32000),
                                       llama("llama2-7b", 32, 4096, 32, 11008, 4096, 32000),
                                       llama3_8b(),
                                       llama32_1b(),
                                       qwen3_600m(),
                                       smollm2_135m()};
  return all;
}

const Preset* find_preset(const std::string& name) {
  for (const Preset& preset : presets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) names.push_back(preset.name);
  return names;
}

}  // namespace t3d
