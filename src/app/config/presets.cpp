#include "app/config/presets.hpp"

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
  preset.model.rope_base = 500000;
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
                                       llama3_8b()};
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
