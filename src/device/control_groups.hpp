// Where the control groups of this process (versions 1 and 2) keep their files.
#pragma once
#include <string>
#include <vector>

namespace t3d {

/// All of a file; empty where it cannot be read.
[[nodiscard]] std::string file_text(const std::string& path);

/// Folders of the process's own group and of those above it, of one controller ("" = version 2),
/// that are visible: the own one first.
[[nodiscard]] std::vector<std::string> group_folders(const std::string& root,
                                                     const std::string& controller);

}  // namespace t3d
