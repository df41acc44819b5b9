// Completion of commands, options, files, folders and keys of the input, as a script of a shell:
// for bash alone (the package bash-completion only finds the file), and for zsh's compsys.
#pragma once
#include <string>

#include "app/manual/command_facts.hpp"

namespace t3d {

[[nodiscard]] std::string bash_completion(const CommandFacts& program);
[[nodiscard]] std::string zsh_completion(const CommandFacts& program);

}  // namespace t3d
