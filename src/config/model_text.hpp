// The table [model] by itself, as text and back: of models that come from elsewhere.
#pragma once
#include <string>
#include <vector>

#include "config/config.hpp"

namespace t3d {

/// An input with every key of [model] and nothing else.
[[nodiscard]] std::string model_text(const ModelConfig& model);
/// The same back, checked as an input is. ConfigErrors, naming `path`, where it is no model.
[[nodiscard]] ModelConfig parse_model_text(const std::string& text, const std::string& path);
/// The [model] of an input that was accepted before, preset and defaults included; what else stands
/// in it is not looked at.
[[nodiscard]] ModelConfig model_of_input(const std::string& text);
/// What an input and --set values say, without a check: wrong ones are told when it is parsed.
/// run.name, run.dir and checkpoint.dir have their defaults.
[[nodiscard]] Config glance_at_input(const std::string& text, const std::string& file_name,
                                     const std::vector<std::string>& overrides);
/// A line for each key of [model] that is another computation in `b`: "rope_base: 500 -> 10000".
/// Lengths, dropout and fresh weights are none.
[[nodiscard]] std::vector<std::string> other_computation(const ModelConfig& a,
                                                         const ModelConfig& b);

/// "124.44 M parameters", and how many of them are trained where not all are.
[[nodiscard]] std::string parameters_text(const ModelConfig& model);

}  // namespace t3d
