// From an input file and --set values to a resolved Config, or to all faults at once.
#pragma once
#include <string>
#include <vector>

#include "app/config/config.hpp"
#include "app/config/config_check.hpp"

namespace t3d {

/// The text of an input file. A regular file: a pipe or a terminal could not be read again.
/// Error(no_input) where it cannot be read.
[[nodiscard]] std::string read_input(const std::string& path, std::string_view whose = "input");

/// Reads `path`; `overrides` are "table.key=value" and win over the file. Throws ConfigErrors with
/// every fault, or Error(no_input) when the file cannot be read.
[[nodiscard]] Config load_config(const std::string& path,
                                 const std::vector<std::string>& overrides = {},
                                 Origins* origins = nullptr);

/// The same from a text, e.g. the input kept in a checkpoint; `file_name` is for messages and for
/// the default of run.name. `base`: the model of what init.from names, for keys that are not
/// written.
[[nodiscard]] Config parse_config(const std::string& text, const std::string& file_name,
                                  const std::vector<std::string>& overrides = {},
                                  Origins* origins = nullptr, const ModelConfig* base = nullptr);

}  // namespace t3d
