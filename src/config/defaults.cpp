#include "config/defaults.hpp"

#include <string_view>

#include "config/config_schema.hpp"
#include "config/presets.hpp"
#include "config/table_list.hpp"

namespace t3d {
namespace {

std::string in_brackets(const Key& key) {
  std::string out = key.type_text();
  if (!key.unit.empty()) out += ", " + key.unit;
  if (const std::string allowed = key.allowed_text(); !allowed.empty()) out += ": " + allowed;
  return "(" + out + ")";
}

/// Lines of at most 100 characters, each beginning with "# ".
std::string comment(std::string_view text) {
  std::string out;
  std::size_t width = 0;
  while (!text.empty()) {
    const auto end = text.find(' ');
    const std::string_view word = text.substr(0, end);
    if (width == 0 || width + 1 + word.size() > 100) {
      out += out.empty() ? "#" : "\n#";
      width = 1;
    }
    out.append(" ").append(word);
    width += 1 + word.size();
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return out + "\n";
}

std::string whence(const Key& key, const Config& config, const Origins& origins) {
  const auto given = origins.find(key.full_name());
  if (given != origins.end()) return given->second.text();
  const Preset* preset = key.table == "model" ? find_preset(config.model.preset) : nullptr;
  if (preset) {
    Config of_preset;
    of_preset.model = preset->model;
    const std::string value = value_text(key, of_preset);
    if (value == value_text(key, config) && value != value_text(key, Config{})) {
      return "preset " + preset->name;
    }
  }
  return value_text(key, config) == value_text(key, Config{}) ? "default" : "computed";
}

std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

constexpr const char* kReferenceHead = R"(# The input file

<!-- Made by `transformer3d --input-reference > docs/02-input.md` from src/config/config_schema.cpp. -->

The input is a [TOML](https://toml.io) file. Only the tables `[run]`, `[model]`, `[data]` and `[batch]`
are needed:

<!-- input -->
```toml
version = 1
[run]
steps = 18865
[model]
preset = "gpt2-124m"
[data]
train = "fineweb/train_*.bin"
[batch]
sequences = 512
```

- `transformer3d --defaults` prints a complete input with comments; `transformer3d --explain KEY`
  prints the help of a key or a table.
- `--set table.key=value` on the command line wins over the file.
- Paths are relative to the folder in which the program is started.
- All faults of an input are listed at once, each with its line, and the program ends with exit code
  78.
- The run folder gets `resolved.toml`: every key, its value, and where it came from.

)";

}  // namespace

std::string defaults_text() {
  std::string out =
      "# Every key of the input with its default. Keys after a '#' have no default (required), or\n"
      "# one that is computed from other keys.\nversion = 1\n";
  for (const TableHelp& table : config_tables()) {
    out += fmt::format("\n{}[{}]\n", comment(table.help), table.name);
    for (const Key* key : keys_of(table.name)) {
      out += comment(key->help + " " + in_brackets(*key));
      const bool computed = key->required || !key->fallback.empty();
      out += computed ? fmt::format("#{} =    # {}\n", key->name, key->default_text())
                      : fmt::format("{} = {}\n", key->name, key->default_text());
    }
  }
  for (const TableList& list : table_lists()) {
    out += fmt::format("\n{}#[[{}]]\n", comment(list.help), list.name);
    for (const Key& key : list.keys)
      out += comment(key.help + " " + in_brackets(key)) +
             fmt::format("#{} =    # {}\n", key.name, key.default_text());
  }
  return out;
}

std::string resolved_text(const Config& config, const Origins& origins) {
  std::string out =
      "# The resolved input: every key, its value, and where it came from.\nversion = 1\n";
  for (const TableHelp& table : config_tables()) {
    out += fmt::format("\n[{}]\n", table.name);
    for (const Key* key : keys_of(table.name)) {
      out += fmt::format("{} = {}  # {}", key->name, value_text(*key, config),
                         whence(*key, config, origins));
      if (key->full_name() == "mesh.cuboid" && config.mesh.cuboid_auto &&
          config.mesh.cuboids.empty()) {
        const auto& [p, q, r] = config.mesh.cuboid;
        out += fmt::format(", here [{}, {}, {}]", p, q, r);
      }
      out += "\n";
    }
  }
  for (const TableList& list : table_lists()) out += list_text(list, config);
  return out;
}

std::string written_text(const Config& config, const Origins& origins) {
  std::string out = "version = 1\n";
  for (const TableHelp& table : config_tables()) {
    std::string lines;
    for (const Key* key : keys_of(table.name))
      if (origins.contains(key->full_name()))
        lines += fmt::format("{} = {}\n", key->name, value_text(*key, config));
    if (!lines.empty()) out += fmt::format("\n[{}]\n{}", table.name, lines);
  }
  for (const TableList& list : table_lists()) out += list_text(list, config);
  return out;
}

std::string input_reference() {
  std::string out = kReferenceHead;
  for (const TableHelp& table : config_tables()) {
    out += fmt::format("## [{}]\n\n{}\n\n", table.name, table.help);
    out += "| key | type | default | allowed | meaning |\n|---|---|---|---|---|\n";
    for (const Key* key : keys_of(table.name)) {
      const bool words = key->required || !key->fallback.empty();
      const std::string by_default = cell(key->default_text());
      out += fmt::format("| `{}` | {}{} | {} | {} | {} |\n", key->name, cell(key->type_text()),
                         key->unit.empty() ? "" : ", " + key->unit,
                         words ? by_default : "`" + by_default + "`", cell(key->allowed_text()),
                         cell(key->help));
    }
    out += "\n";
  }
  for (const TableList& list : table_lists()) {
    out += fmt::format("## [[{}]]\n\n{}\n\n", list.name, list.help);
    out += "| key | type | default | allowed | meaning |\n|---|---|---|---|---|\n";
    for (const Key& key : list.keys)
      out += fmt::format("| `{}` | {} | {} | {} | {} |\n", key.name, key.type_text(), key.fallback,
                         cell(key.allowed_text()), cell(key.help));
    out += "\n";
  }
  out +=
      "## Presets\n\n| name | layers | hidden | heads | kv heads | context | vocab |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const Preset& preset : presets()) {
    const ModelConfig& m = preset.model;
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", preset.name, m.layers, m.hidden,
                       m.heads, m.kv_heads > 0 ? m.kv_heads : m.heads, m.context, m.vocab);
  }
  out +=
      "\nThe gpt presets have layernorm, gelu, learned positions, biases and tied embeddings. The\n"
      "others have rmsnorm, swiglu, rope and no biases; of these, llama3.2-1b, qwen3-0.6b and\n"
      "smollm2-135m have tied embeddings. qwen3-0.6b has heads of size 128, with `qk_norm`.\n"
      "`context` is what the preset trains with: the published weights of llama3.2-1b and\n"
      "qwen3-0.6b allow more (`model.context`).\n";
  return out;
}

}  // namespace t3d
