// config.json of a Hugging Face model, as [model] and back. Families: hf_layout.hpp. Both ways of
// writing rotations are read: rope_theta with rope_scaling, and rope_parameters (transformers 5).
#pragma once
#include <string>
#include <string_view>

#include "core/options.hpp"
#include "core/special_ids.hpp"

namespace t3d {

/// Error(config), naming the key, when the model computes something that ours does not (another
/// activation, partial rotations, ...); Error(io) when the text is no config.json. model.context is
/// the longest that it allows, and that its sliding window does not reach into.
[[nodiscard]] ModelConfig parse_hf_config(std::string_view text, const std::string& path);

/// The longest context in which the model's sliding window hides nothing; 0 = it has none.
[[nodiscard]] index_t parse_hf_window(std::string_view text, const std::string& path);

/// `dtype`: "float32", ... of the weights beside it.
[[nodiscard]] std::string hf_config_text(const ModelConfig& model, std::string_view dtype,
                                         const SpecialIds& tokens);
/// generation_config.json beside it.
[[nodiscard]] std::string hf_generation_text(const SpecialIds& tokens);

}  // namespace t3d
