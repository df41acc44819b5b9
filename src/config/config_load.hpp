// From an input file and --set values to a resolved Config, or to all faults at once.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "config/config_check.hpp"

namespace t3d {

/// The text of an input file. A regular file: a pipe or a terminal could not be read again.
/// Error(no_input) where it cannot be read.
[[nodiscard]] std::string read_input(const std::string& path, std::string_view whose = "input");

/// Reads `path`; `overrides` are "table.key=value" and win over the file. Throws ConfigErrors with
/// every fault, or Error(no_input) when the file cannot be read.
[[nodiscard]] Config load_config(const std::string& path,
                                 const std::vector<std::string>& overrides = {},
                                 Origins* origins = nullptr);

/// What lies outside of the input and bears on it.
struct InputWorld {
  const ModelConfig* base =
      nullptr;  // model of what init.from names, for keys that are not written
  Fault init;   // why that cannot be read; its place is found here
  /// More faults, of the input as far as it could be read.
  std::function<std::vector<Fault>(const Config&, const Origins&)> more;
};

/// The same from a text, e.g. the input kept in a checkpoint; `file_name` is for messages and for
/// the default of run.name. Where init.from cannot be read, the keys of [model] that it would have
/// given are no faults of their own.
[[nodiscard]] Config parse_config(const std::string& text, const std::string& file_name,
                                  const std::vector<std::string>& overrides = {},
                                  Origins* origins = nullptr, const InputWorld& outside = {});

}  // namespace t3d
