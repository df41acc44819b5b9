// The table [model] by itself, as text and back: of models that come from elsewhere.
#pragma once
#include <string>
#include <vector>

#include "core/options.hpp"

namespace t3d {

/// An input with every key of [model] and nothing else.
[[nodiscard]] std::string model_text(const ModelConfig& model);
/// The model that an input's [model] says, whatever else stands in it. ConfigErrors, naming `path`,
/// where that is wrong.
[[nodiscard]] ModelConfig parse_model_text(const std::string& text, const std::string& path);
/// The keys of [model] that model_text() wrote, as they are: no default is filled in.
[[nodiscard]] ModelConfig read_model_text(const std::string& text);
/// init.from of an input and of --set values; empty where it is not there or wrong.
[[nodiscard]] std::string init_from_of(const std::string& text,
                                       const std::vector<std::string>& overrides);

}  // namespace t3d
