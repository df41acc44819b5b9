// Known models by name. A preset leaves kv_heads and ffn at 0 where the usual rule gives them, so
// that a changed width carries them along.
#pragma once
#include <string>
#include <vector>

#include "config/config.hpp"

namespace t3d {

struct Preset {
  std::string name;
  ModelConfig model;
};

[[nodiscard]] const std::vector<Preset>& presets();
[[nodiscard]] const Preset* find_preset(const std::string& name);
[[nodiscard]] std::vector<std::string> preset_names();

}  // namespace t3d
