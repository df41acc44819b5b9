// Where a command's result goes (-o FILE, -o DIR). One rule for all commands: folders that are
// missing are made, with their parents, when the result is written; that this is possible is looked
// at before the work, which may take minutes.
#pragma once
#include <string>

namespace t3d {

/// Error(io) where `folder` is something else, cannot be made, or may not be written into.
void check_output_folder(const std::string& folder);
/// The same of the folder of `file`, which must be a regular file or nothing yet.
void check_output_file(const std::string& file);

}  // namespace t3d
