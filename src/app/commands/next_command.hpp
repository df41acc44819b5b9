// The command that continues a run, for people to copy.
#pragma once
#include <string>

#include "app/cli.hpp"

namespace t3d {

/// "transformer3d input.toml --set a.b=c": as this one was called, but for -r, which would go back
/// again, and for the keys that `instead` ("table.key=value") sets; it stands at the end.
[[nodiscard]] std::string next_command(const CommandLine& command, const std::string& instead = {});

}  // namespace t3d
