// The command that continues a run, for people to copy.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "run/run_words.hpp"

namespace t3d {

/// "transformer3d input.toml --set a.b=c": as this one was called, `without` these keys and that of
/// `instead`
/// ("table.key=value"), which stands at the end.
[[nodiscard]] std::string next_command(const RunWords& command,
                                       const std::vector<std::string_view>& without,
                                       const std::string& instead = {});

}  // namespace t3d
