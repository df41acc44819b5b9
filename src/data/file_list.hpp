// The files that a list of names and globs means.
#pragma once
#include <string>
#include <vector>

namespace t3d {

/// Each pattern that is not the name of a file expanded in sorted order. Error(no_input) when one
/// matches nothing, Error(config) when there is no pattern.
[[nodiscard]] std::vector<std::string> list_files(const std::vector<std::string>& patterns);

}  // namespace t3d
