#include "app/config/model_text.hpp"

#include "app/config/config_load.hpp"
#include "app/config/config_schema.hpp"

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

ModelConfig read_model_text(const std::string& text) {
  Config config;
  for (const InputEntry& entry : parse_toml(text, "").entries)
    if (const Key* key = find_key(entry.name()); key != nullptr && entry.table == "model")
      (void)set_value(*key, entry, config);
  return config.model;
}

std::string init_from_of(const std::string& text, const std::vector<std::string>& overrides) {
  Config config;
  const Key& key = *find_key("init.from");
  const auto take = [&](const InputEntry& entry) {
    if (entry.name() == key.full_name()) (void)set_value(key, entry, config);
  };
  try {
    for (const InputEntry& entry : parse_toml(text, "").entries) take(entry);
    for (const std::string& assignment : overrides) take(parse_override(assignment));
  } catch (const ConfigErrors&) {  // told, with all others, when the input is parsed
  }
  return config.init.from;
}

}  // namespace t3d
