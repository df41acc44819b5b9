// config.json of a Hugging Face model, as [model] and back. Families: hf_layout.hpp. Both ways of
// writing rotations are read: rope_theta with rope_scaling, and rope_parameters (transformers 5).
#pragma once
#include <string>
#include <string_view>

#include "core/options.hpp"

namespace t3d {

/// Error(config), naming the key, when the model computes something that ours does not (another
/// activation, a sliding window, ...); Error(io) when the text is no config.json. model.context is
/// the longest that it allows.
[[nodiscard]] ModelConfig parse_hf_config(std::string_view text, const std::string& path);

struct HfTokens {
  std::int64_t bos = -1, eos = -1, pad = -1;  // -1 = none
};
/// `dtype`: "float32", ... of the weights beside it.
[[nodiscard]] std::string hf_config_text(const ModelConfig& model, std::string_view dtype,
                                         const HfTokens& tokens);

}  // namespace t3d
