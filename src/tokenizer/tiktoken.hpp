// Files of ranks, "BASE64 RANK" per line. The pattern that cuts texts into words is not in them: it
// follows from the number of ranks of the files that are known, or from a first line
// "# pattern NAME".
#pragma once
#include <string_view>

namespace t3d {

/// Whether the first lines are such.
[[nodiscard]] bool is_tiktoken(std::string_view model);

}  // namespace t3d
