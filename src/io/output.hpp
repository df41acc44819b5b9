// Standard output with every error looked at. The C library keeps text in memory and drops it
// silently when a disk is full; a command whose result is its output must end with an error then.
#pragma once
#include <string_view>

namespace t3d {

/// Error(io) when standard output does not take the text.
void write_output(std::string_view text);
/// Hands on what is still in memory. Error(io) when that, or any write before, failed.
void flush_output();

}  // namespace t3d
