// Parses the command line.
#pragma once
#include "tools/command_line.hpp"

namespace t3d {

/// Whether the words ask for something that needs no ranks, wherever it is called: no MPI then.
[[nodiscard]] bool needs_no_ranks(int argc, const char* const* argv);
/// Throws Error(usage) with the text to show.
[[nodiscard]] CommandLine parse_command_line(int argc, const char* const* argv);

}  // namespace t3d
