// transformer3d(1), in the macros of man: commands and options from the command line's own, keys
// from the schema of the input, exit codes from their table.
#pragma once
#include <string>

#include "app/manual/command_facts.hpp"

namespace t3d {

[[nodiscard]] std::string man_page(const CommandFacts& program, const std::string& version);

}  // namespace t3d
