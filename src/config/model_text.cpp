#include "config/model_text.hpp"

#include <algorithm>
#include <array>

#include "config/config_check.hpp"
#include "config/config_load.hpp"
#include "config/config_schema.hpp"
#include "config/presets.hpp"
#include "tensor3d/frozen.hpp"

namespace t3d {

std::string model_text(const ModelConfig& model) {
  Config config;
  config.model = model;
  std::string text = "version = 1\n\n[model]\n";
  for (const Key* key : keys_of("model"))
    text += fmt::format("{} = {}\n", key->name, value_text(*key, config));
  return text;
}

ModelConfig parse_model_text(const std::string& text, const std::string& path) {
  // What an input must have beside a model.
  return parse_config(text, path, {"run.steps=1", "batch.sequences=1", "data.train=['-']"}).model;
}

Config glance_at_input(const std::string& text, const std::string& file_name,
                       const std::vector<std::string>& overrides) {
  Config config;
  const auto take = [&](const InputEntry& entry) {
    if (const Key* key = find_key(entry.name())) (void)set_value(*key, entry, config);
  };
  try {
    const InputDocument document = parse_toml(text, file_name);
    std::vector<InputEntry> entries = document.entries;
    for (const std::string& assignment : overrides) entries.push_back(parse_override(assignment));
    for (const InputEntry& entry : entries)
      if (entry.name() == "model.preset") take(entry);
    if (const Preset* preset = find_preset(config.model.preset)) config.model = preset->model;
    for (const InputEntry& entry : entries) take(entry);
  } catch (const ConfigErrors&) {  // told, with all others, when the input is parsed
  }
  fill_computed_defaults(config, file_name);
  return config;
}

ModelConfig model_of_input(const std::string& text) { return glance_at_input(text, "", {}).model; }

std::vector<std::string> other_computation(const ModelConfig& a, const ModelConfig& b) {
  constexpr std::array<std::string_view, 9> kFree{"preset",  "context",        "max_context",
                                                  "dropout", "init_std",       "vocab",
                                                  "bias",    "attention_bias", "freeze"};
  Config first, second;
  first.model = a, second.model = b;
  std::vector<std::string> lines;
  for (const Key* key : keys_of("model")) {
    if (std::find(kFree.begin(), kFree.end(), key->name) != kFree.end()) continue;
    const std::string before = value_text(*key, first), after = value_text(*key, second);
    if (before != after)
      lines.push_back(fmt::format("model.{}: {} -> {}", key->name, before, after));
  }
  const auto biases = [](const ModelConfig& m) {
    return fmt::format("qkv {}, projection {}, feed-forward {}, norms {}", m.qkv_bias(),
                       m.proj_bias(), m.mlp_bias(), m.norm_vectors() > 1);
  };
  if (biases(a) != biases(b))
    lines.push_back(fmt::format("biases: {} -> {}", biases(a), biases(b)));
  return lines;
}

std::string parameters_text(const ModelConfig& model) {
  const ParameterCounts counts = parameter_counts(model);
  std::string text = fmt::format("{:.2f} M parameters", static_cast<double>(counts.all) / 1e6);
  if (counts.trained >= counts.all) return text;
  const double share = 100 * static_cast<double>(counts.trained) / static_cast<double>(counts.all);
  return text + fmt::format(", {} of them trained ({:.2f} %)", counts.trained, share);
}

}  // namespace t3d
